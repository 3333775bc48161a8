//! Formatting: which changes it makes, what it keeps, and that it is idempotent.

use super::format;
use crate::codes::is_of_text;
use crate::diag::Sink;
use crate::outline::{WordKind, words};
use crate::parser::parse;
use crate::print::print_module;
use pretty_assertions::assert_eq;

#[track_caller]
fn formatted(source: &str) -> String {
    let mut sink = Sink::new();
    let text = format(source, &mut sink).unwrap_or_else(|_| panic!("{:?}\n{source}", sink.diagnostics()));
    assert_eq!(format(&text, &mut sink).as_ref(), Ok(&text), "formatted again");
    text
}

#[test]
fn spaces_and_indentation_follow_from_tokens() {
    let source = "\
// A head.


kernel  k<T:f16|f32=f16,
    N=8> ( A : gmem T[ M,K ]   multiple 4 ,
  B: gmem T[M, K], n: i32=-1) grid(i:ceildiv( M,N ))
where K%4==0,
M<=100
   schedule{ threads 128
stages 2 }
{


  /* one
       two */ var   x=reg T [N,64]
  copy A[i*N..,- 1..]->x   // in
  let y=- x+cast < T >( x ) // sum
      if i==0 && n< -3{
  copy y ->B [i*N.. , 0..] } else
  {
  copy y
   ->B[ i*N..,.. ]
         }
     for k in 0..K step 4 { }

}
";
    assert_eq!(
        formatted(source),
        "\
// A head.

kernel k<T: f16 | f32 = f16,
         N = 8>(A: gmem T[M, K] multiple 4,
                B: gmem T[M, K], n: i32 = -1) grid (i: ceildiv(M, N))
    where K % 4 == 0,
          M <= 100
    schedule { threads 128
        stages 2 }
{
    /* one
       two */ var x = reg T[N, 64]
    copy A[i * N.., -1..] -> x  // in
    let y = -x + cast<T>(x)     // sum
    if i == 0 && n < -3 {
        copy y -> B[i * N.., 0..] } else
    {
        copy y
            -> B[i * N.., ..]
    }
    for k in 0..K step 4 {}
}
"
    );
}

#[test]
fn printed_programs_are_formatted() {
    for (name, source) in crate::parser::tests::SAMPLES {
        let text = print_module(&parse(source, &mut Sink::new()).unwrap());
        assert_eq!(formatted(&text), text, "{name}");
    }
}

#[test]
fn brackets_that_stay_open_indent_what_they_hold() {
    let source = "\
kernel k(A: gmem f32[M, 64]) {
var a = reg f32[1, 64]
let (m, s) = reduce (a,
1.0) along 1 with (ma, sa),
(mb, sb) {
let top = max(ma,
mb)
give top,
sa +
sb
}
let z = max(
a,
m
)
copy z -> A[0..,
0..]
}
";
    assert_eq!(
        formatted(source),
        "\
kernel k(A: gmem f32[M, 64]) {
    var a = reg f32[1, 64]
    let (m, s) = reduce (a,
                         1.0) along 1 with (ma, sa),
        (mb, sb) {
        let top = max(ma,
                      mb)
        give top,
            sa +
            sb
    }
    let z = max(
        a,
        m
    )
    copy z -> A[0..,
                0..]
}
"
    );
}

#[test]
fn lines_have_one_kind_of_end() {
    let source = "/* one\r\n   two */\r\nkernel k(A: gmem f32[M]) grid (i: M) { // three\r\n}\r\n";
    assert_eq!(formatted(source), formatted(&source.replace("\r\n", "\n")));
}

#[test]
fn what_is_no_program_is_left_alone() {
    let mut sink = Sink::new();
    assert!(format("kernel k( {", &mut sink).is_err());
    assert!(sink.error_count() > 0);
}

/// Names, shapes and types may be wrong: the text is laid out as that of the program is.
#[test]
fn what_a_name_stands_for_does_not_matter() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("entry").path();
        let Some(source) = path.extension().filter(|e| *e == "tile").and_then(|_| std::fs::read_to_string(&path).ok())
        else {
            continue;
        };
        let names = words(&source).into_iter().filter(|w| w.kind == WordKind::Name);
        // A sample of the words is enough, a different one in each file.
        for word in names.skip(tried % 13).step_by(13) {
            let (start, end) = (word.span.start as usize, word.span.end as usize);
            let wrong = format!("{}{}{}", &source[..start], "q".repeat(end - start), &source[end..]);
            let mut sink = Sink::new();
            match format(&wrong, &mut sink) {
                Ok(text) => assert_eq!(text, wrong, "{}", path.display()),
                // Words of the grammar are names, too.
                Err(_) => assert!(sink.diagnostics().iter().any(|d| is_of_text(d.code)), "{:?}", sink.diagnostics()),
            }
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn errors_of_names_shapes_and_types_do_not_matter() {
    for (code, line) in [
        ("E0201", "copy nothing[i.., 0..] -> A[0..]"),
        ("E0202", "let M = A[0]"),
        ("E0203", "x = sinn(x) + 1.0"),
        ("E0204", "var y = reg f17[32] = 0.0"),
        ("E0205", "var y = reg BM[32] = 0.0"),
        ("E0207", "x = mma<m1n1k1>(x, x, x)"),
        ("E0221", "x = x + reshape"),
        ("E0228", "copy sum(x, 1, parts (3, 2)) -> A[0..]"),
        ("E0234", "var y = reg f32[0] = 0.0"),
    ] {
        let text = format!(
            "kernel k<BM = 8>(A: gmem f32[M]) {{\n    var x = reg f32[32] = 0.0\n    {line}\n    x = x * 2.0  // twice\n}}\n"
        );
        assert_eq!(formatted(&text), text, "{code}");
        assert_eq!(formatted(&text.replace("    ", "  ")), text, "{code}");
    }
}

#[test]
fn comments_stand_below_each_other_within_a_part() {
    let text = "\
kernel k(A: gmem f32[M, N],  // read
         B: gmem f32[N])     // written
    grid (i: ceildiv(M, 32),  // rows
          j: 4)
    where M % 4 == 0, N % 4 == 0, N <= 65536, M <= 65536  // sizes
    schedule {
        threads 128  // warps
        stages 2     // slots
    }
{  // open
    var x = reg f32[32] = 0.0  // sum
    if i == 0 {                // first
        x = x + 1.0            // one
    }
    copy x -> B[..]  // all
}
";
    assert_eq!(formatted(text), text);
    assert_eq!(formatted(&text.replace("  //", "      //")), text);
}

/// What reads as a layout of a buffer is formatted, also if it is none: strides of padded rows.
#[test]
fn texts_of_layouts_that_are_none_are_formatted() {
    let text = "\
kernel k(A: gmem f32[M]) {
    let s = smem f32[16, 4] layout (16,4):(5,1)
    let t = smem f32[16, 4] layout (16,4):(5,1) swizzle<1,2,3>
}
";
    assert_eq!(formatted(&text.replace("    ", "  ")), text);
    let mut sink = Sink::new();
    assert!(format(&text.replace("(5,1)", "(5,"), &mut sink).is_err());
}

#[test]
fn a_text_without_kernels_is_kept() {
    for text in ["", "// A comment.\n", "/* One\n   two */\n\n// Three.\n"] {
        assert_eq!(formatted(text), text);
    }
    assert_eq!(formatted("\n\n  // A comment.\n\n\n"), "// A comment.\n");
}
