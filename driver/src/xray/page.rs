//! One HTML file: the style, the modules and the data in it.

/// A module of the page: its name in `import`, and its text.
const MODULES: &[(&str, &str)] = &[
    ("xray/links.js", include_str!("../../xray/links.js")),
    ("xray/select.js", include_str!("../../xray/select.js")),
    ("xray/columns.js", include_str!("../../xray/columns.js")),
    ("xray/pictures.js", include_str!("../../xray/pictures.js")),
    ("xray/compare.js", include_str!("../../xray/compare.js")),
    ("xray/search.js", include_str!("../../xray/search.js")),
    ("xray/work.js", include_str!("../../xray/work.js")),
];
const MAIN: &str = include_str!("../../xray/main.js");
const STYLE: &str = include_str!("../../xray/style.css");
const FRAME: &str = include_str!("../../xray/frame.html");

/// The page of a program.
pub(super) fn page(file: &str, target: &str, json: &str) -> String {
    let imports: Vec<String> = MODULES
        .iter()
        .map(|(name, text)| format!("\"{name}\": \"data:text/javascript;charset=utf-8,{}\"", encoded(text)))
        .collect();
    let title = escaped(&format!("{file} for {target}"));
    let map = format!("{{\"imports\": {{{}}}}}", imports.join(",\n"));
    // In the order of the frame, so that nothing that was put in is looked at again.
    let mut out = String::with_capacity(json.len() + FRAME.len() + STYLE.len() + MAIN.len() + map.len());
    let mut rest = FRAME;
    let data = in_script(json);
    for (mark, text) in [
        ("{{title}}", title.as_str()),
        ("{{style}}", STYLE),
        ("{{data}}", &data),
        ("{{modules}}", &map),
        ("{{main}}", MAIN),
    ] {
        let (before, after) = rest.split_once(mark).expect("bug: the frame has every mark once, in order");
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON that a script element holds: nothing in it ends the element, or begins a comment.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A text in a `data:` address.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'();,/?:@&=+$ ".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_element() {
        let page = page("</title><x.tile", "sm_70", "{\"text\":\"</script><script>{{main}}\"}");
        assert!(!page.contains("</script><script>{{main}}") && !page.contains("</title><x"), "{page}");
        assert_eq!(page.matches("{{main}}").count(), 1, "what is put in is not looked at");
    }

    #[test]
    fn modules_are_encoded() {
        assert_eq!(encoded("a<\"%\n\u{e9}"), "a%3C%22%25%0A%C3%A9");
    }
}
