//! What is to be done also where code of the caller's panics.

/// Does it when dropped.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Does something with each of them, also with the rest where it panics with one.
#[cfg(feature = "alloc")]
pub(crate) fn for_all<I: IntoIterator>(items: I, run: impl FnMut(I::Item)) {
    struct Rest<I: Iterator, F: FnMut(I::Item)>(I, F);

    impl<I: Iterator, F: FnMut(I::Item)> Rest<I, F> {
        fn run(&mut self) {
            let Self(items, run) = self;
            items.for_each(run);
        }
    }

    impl<I: Iterator, F: FnMut(I::Item)> Drop for Rest<I, F> {
        fn drop(&mut self) {
            self.run();
        }
    }

    Rest(items.into_iter(), run).run();
}
