//! Reading the tables of a page.

/// A table, and the heading that it is under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The last heading above it, after that of the part of the page, if it is not the first.
    pub title: String,
    /// The heads of its columns.
    pub heads: Vec<String>,
    /// Its cells, as many in each row as there are heads.
    pub rows: Vec<Vec<String>>,
    /// As it is written.
    pub text: String,
}

impl Table {
    /// The column under this head.
    pub fn column(&self, head: &str) -> Option<usize> {
        self.heads.iter().position(|each| each == head)
    }
}

/// The tables of a page, in order.
pub fn of(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut title, mut part, mut is_within) = (String::new(), None, false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            // The page's own title says nothing about one of its tables; that of a later part does.
            part = part.map(|_| format!("{heading}: ")).or(Some(String::new()));
            title = heading.into();
        } else if let Some(heading) = line.strip_prefix("##") {
            title = format!("{}{}", part.as_deref().unwrap_or_default(), heading.trim_start_matches('#').trim());
        }
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            is_within = false;
            continue;
        };
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().into()).collect();
        match tables.last_mut().filter(|_| is_within) {
            Some(table) => {
                table.text.push_str(line);
                table.text.push('\n');
                let is_ruler = cells.iter().all(|cell| cell.starts_with("--"));
                if !is_ruler && cells.len() == table.heads.len() {
                    table.rows.push(cells);
                }
            }
            None => {
                tables.push(Table { title: title.clone(), heads: cells, rows: Vec::new(), text: format!("{line}\n") });
            }
        }
        is_within = true;
    }
    tables
}

/// The number that a cell begins with.
pub fn number(cell: &str) -> Option<f64> {
    cell.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_under_their_headings() {
        let page = "# One\n\nText | text.\n\n| | a |\n|---|--:|\n| x | 1.5 |\n\n## Two\n\n| | b |\n|---|--:|\n| y | 2 (3x) |\n| z | -- |\n\n# More\n\n## Two\n\n| | b |\n|---|--:|\n";
        let tables = of(page);
        assert_eq!(tables.iter().map(|table| table.title.as_str()).collect::<Vec<_>>(), ["One", "Two", "More: Two"]);
        assert_eq!(tables[0].rows, [["x", "1.5"]]);
        assert_eq!(tables[1].rows, [["y", "2 (3x)"], ["z", "--"]]);
        assert_eq!((tables[1].column("b"), tables[1].column("a")), (Some(1), None));
        assert_eq!((number("2 (3x)"), number("-")), (Some(2.0), None));
        assert!(tables[0].text.ends_with("| x | 1.5 |\n"));
    }
}
