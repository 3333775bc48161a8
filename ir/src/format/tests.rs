//! Formatting: what it changes, what it keeps, and that it does so once.

use super::format;
use crate::diag::Sink;
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
