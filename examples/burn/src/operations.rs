//! The operations of this crate as an extension of Burn's backends, and the kernels that they launch.

use crate::memory::{Memory, Wanted, refuse};
use burn::backend::{Backend, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::DType;

/// Slices of rows whose parts of the gradient of the weights are summed at last: a few times the multiprocessors of a large GPU.
const SLICES: u32 = 528;

/// Operations that are kernels. Matrices are `[rows, columns]`; the functions of this crate take other shapes too.
#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait Kernels: Backend {
    /// `Y = X·Wᵀ`.
    fn product(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    /// `dX = dY·W`.
    fn product_dx(dy: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    /// `dW = dYᵀ·X`.
    fn product_dw(dy: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `Y = X / sqrt(mean of X² + eps) * W`, for each row.
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> FloatTensor<Self>;
    /// Its gradients, of X and of W.
    fn rms_norm_gradients(
        x: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        w: FloatTensor<Self>,
        eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Causal attention; and, of every query, the logarithm of the sum of its weights, in f32 for the gradients.
    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
    /// Its gradients, of Q, K and V, of the result, its gradient and the logarithms.
    fn causal_attention_gradients(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        o: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        logarithms: FloatTensor<Self>,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// A tensor of bf16 as kernels take it.
fn taken<B: Memory>(x: FloatTensor<B>) -> FloatTensor<B> {
    match x.dtype() {
        DType::BF16 => B::packed(x),
        other => refuse(format!("expected bf16, found {other:?}")),
    }
}

/// The extents of a tensor that has `R` dimensions.
fn extents<const R: usize>(x: &impl TensorMetadata) -> [usize; R] {
    let shape = x.shape().to_vec();
    let found = shape.len();
    shape.try_into().unwrap_or_else(|_| refuse(format!("a tensor of {R} dimensions is expected, found {found}")))
}

fn bf16(shape: &[usize]) -> Wanted {
    (shape.to_vec(), DType::BF16)
}

/// Weights of attention are powers of two.
fn in_powers_of_two(scale: f32) -> f32 {
    scale * std::f32::consts::LOG2_E
}

impl<B: Memory> Kernels for B {
    fn product(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        let ([m, _], [n, _]) = (extents(&x), extents(&w));
        let [y] = B::launch([taken::<B>(x), taken::<B>(w)], [bf16(&[m, n])], |all, [x, w], [y], stream| {
            all.linear.with(x.bf16(), w.bf16().transposed(), y.bf16()).launch(stream)
        });
        y
    }

    fn product_dx(dy: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        let ([m, _], [_, k]) = (extents(&dy), extents(&w));
        let [dx] = B::launch([taken::<B>(dy), taken::<B>(w)], [bf16(&[m, k])], |all, [dy, w], [dx], stream| {
            all.linear_dx.with(dy.bf16(), w.bf16(), dx.bf16()).launch(stream)
        });
        dx
    }

    fn product_dw(dy: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
        let ([_, n], [_, k]) = (extents(&dy), extents(&x));
        let [dw] = B::launch([taken::<B>(dy), taken::<B>(x)], [bf16(&[n, k])], |all, [dy, x], [dw], stream| {
            all.linear_dw.with(dy.bf16().transposed(), x.bf16(), dw.bf16()).launch(stream)
        });
        dw
    }

    fn rms_norm(x: FloatTensor<B>, w: FloatTensor<B>, eps: f32) -> FloatTensor<B> {
        let shape: [usize; 2] = extents(&x);
        let [y] = B::launch([taken::<B>(x), taken::<B>(w)], [bf16(&shape)], |all, [x, w], [y], stream| {
            all.rms_norm.with(x.bf16(), w.bf16(), y.bf16()).eps(eps).launch(stream)
        });
        y
    }

    fn rms_norm_gradients(
        x: FloatTensor<B>,
        dy: FloatTensor<B>,
        w: FloatTensor<B>,
        eps: f32,
    ) -> (FloatTensor<B>, FloatTensor<B>) {
        let [m, n] = extents(&x);
        let slices = u32::try_from(m).map_or(SLICES, |m| SLICES.min(m));
        let inputs = [taken::<B>(x), taken::<B>(dy), taken::<B>(w)];
        let [dx, dw] = B::launch(inputs, [bf16(&[m, n]), bf16(&[n])], |all, [x, dy, w], [dx, dw], stream| {
            let (dx, dw) = (dx.bf16(), dw.bf16());
            all.rms_norm_backward.with(x.bf16(), dy.bf16(), w.bf16(), dx, dw, slices).eps(eps).launch(stream)
        });
        (dx, dw)
    }

    fn causal_attention(
        q: FloatTensor<B>,
        k: FloatTensor<B>,
        v: FloatTensor<B>,
        scale: f32,
    ) -> (FloatTensor<B>, FloatTensor<B>) {
        let [z, h, l, d] = extents(&q);
        let results = [bf16(&[z, h, l, d]), (vec![z, h, l, 1], DType::F32)];
        let inputs = [taken::<B>(q), taken::<B>(k), taken::<B>(v)];
        let [o, logarithms] = B::launch(inputs, results, |all, [q, k, v], [o, logarithms], stream| {
            let launch = all.attention.with(q.bf16(), k.bf16(), v.bf16(), o.bf16(), logarithms.f32());
            launch.scale_log2(in_powers_of_two(scale)).launch(stream)
        });
        (o, logarithms)
    }

    fn causal_attention_gradients(
        q: FloatTensor<B>,
        k: FloatTensor<B>,
        v: FloatTensor<B>,
        o: FloatTensor<B>,
        grad: FloatTensor<B>,
        logarithms: FloatTensor<B>,
        scale: f32,
    ) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
        let shape: [usize; 4] = extents(&q);
        let [q, k, v, o, grad] = [q, k, v, o, grad].map(taken::<B>);
        let results = [bf16(&shape), bf16(&shape), bf16(&shape)];
        let [dq, dk, dv] = B::launch(
            [q, k, v, o, grad, logarithms],
            results,
            |all, [q, k, v, o, grad, logarithms], [dq, dk, dv], stream| {
                let (dk, dv, dq) = (dk.bf16(), dv.bf16(), dq.bf16());
                all.attention_backward
                    .with(o.bf16(), grad.bf16(), logarithms.f32(), q.bf16(), k.bf16(), v.bf16(), dk, dv, dq)
                    .scale_log2(in_powers_of_two(scale))
                    .launch(stream)
            },
        );
        (dq, dk, dv)
    }
}
