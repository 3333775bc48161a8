//! The operations on tensors that Burn differentiates.

use crate::Kernels;
use crate::memory::refuse;
use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::{Backend, tensor::FloatTensor};
use std::fmt::Debug;

/// A tensor that Burn differentiates.
type Differentiated<B, C> = FloatTensor<Autodiff<B, C>>;

/// An operation of `N` tensors that has gradients.
trait Operation<B: Backend, const N: usize>: Copy + Debug + Send + 'static {
    /// What the gradients need beside the tensors.
    type Kept: Clone + Debug + Send + 'static;

    fn result(self, inputs: [FloatTensor<B>; N]) -> (FloatTensor<B>, Self::Kept);

    /// The gradients of the tensors, of that of the result. Those that nobody `asks` for may be left out.
    fn gradients(
        self,
        inputs: [FloatTensor<B>; N],
        kept: Self::Kept,
        grad: FloatTensor<B>,
        asks: [bool; N],
    ) -> [Option<FloatTensor<B>>; N];
}

/// The step of the backward pass. Burn wants it without fields: the operation itself is part of the state.
#[derive(Debug)]
struct Step<O>(std::marker::PhantomData<O>);

impl<B: Backend, O: Operation<B, N>, const N: usize> Backward<B, N> for Step<O> {
    type State = (O, [NodeId; N], O::Kept);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let (operation, ids, kept) = ops.state;
        let inputs = ids.map(|id| checkpointer.retrieve_node_output(id));
        let asks = ops.parents.each_ref().map(Option::is_some);
        for (parent, grad) in ops.parents.into_iter().zip(operation.gradients(inputs, kept, grad, asks)) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<B>(parent.id, grad);
            }
        }
    }
}

/// Applies an operation, and has Burn know its gradients.
fn applied<B: Backend, C: CheckpointStrategy, O: Operation<B, N>, const N: usize>(
    operation: O,
    inputs: [Differentiated<B, C>; N],
) -> (Differentiated<B, C>, O::Kept) {
    let step = Step::<O>(std::marker::PhantomData);
    match step.prepare::<C>(inputs.each_ref().map(|x| x.node())).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let ids = inputs.each_ref().map(|x| prep.checkpoint(x));
            let (result, kept) = operation.result(inputs.map(|x| x.into_primitive()));
            (prep.finish((operation, ids, kept.clone()), result), kept)
        }
        OpsKind::UnTracked(prep) => {
            let (result, kept) = operation.result(inputs.map(|x| x.into_primitive()));
            (prep.finish(result), kept)
        }
    }
}

#[derive(Copy, Clone, Debug)]
struct Linear;

impl<B: Kernels> Operation<B, 2> for Linear {
    type Kept = ();

    fn result(self, [x, w]: [FloatTensor<B>; 2]) -> (FloatTensor<B>, ()) {
        (B::product(x, w), ())
    }

    fn gradients(
        self,
        [x, w]: [FloatTensor<B>; 2],
        (): (),
        grad: FloatTensor<B>,
        [of_x, of_w]: [bool; 2],
    ) -> [Option<FloatTensor<B>>; 2] {
        [of_x.then(|| B::product_dx(grad.clone(), w)), of_w.then(|| B::product_dw(grad, x))]
    }
}

#[derive(Copy, Clone, Debug)]
struct RmsNorm {
    eps: f32,
}

impl<B: Kernels> Operation<B, 2> for RmsNorm {
    type Kept = ();

    fn result(self, [x, w]: [FloatTensor<B>; 2]) -> (FloatTensor<B>, ()) {
        (B::rms_norm(x, w, self.eps), ())
    }

    fn gradients(
        self,
        [x, w]: [FloatTensor<B>; 2],
        (): (),
        grad: FloatTensor<B>,
        _asks: [bool; 2],
    ) -> [Option<FloatTensor<B>>; 2] {
        let (dx, dw) = B::rms_norm_gradients(x, grad, w, self.eps);
        [Some(dx), Some(dw)]
    }
}

#[derive(Copy, Clone, Debug)]
struct Attention {
    scale: f32,
}

impl<B: Kernels> Operation<B, 3> for Attention {
    /// The result and the logarithms.
    type Kept = (FloatTensor<B>, FloatTensor<B>);

    fn result(self, [q, k, v]: [FloatTensor<B>; 3]) -> (FloatTensor<B>, Self::Kept) {
        let (o, logarithms) = B::causal_attention(q, k, v, self.scale);
        (o.clone(), (o, logarithms))
    }

    fn gradients(
        self,
        [q, k, v]: [FloatTensor<B>; 3],
        (o, logarithms): Self::Kept,
        grad: FloatTensor<B>,
        _asks: [bool; 3],
    ) -> [Option<FloatTensor<B>>; 3] {
        let (dq, dk, dv) = B::causal_attention_gradients(q, k, v, o, grad, logarithms, self.scale);
        [Some(dq), Some(dk), Some(dv)]
    }
}

fn second_order() -> ! {
    refuse("gradients have no gradients")
}

impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn product(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        applied::<B, C, _, 2>(Linear, [x, w]).0
    }

    fn product_dx(_dy: FloatTensor<Self>, _w: FloatTensor<Self>) -> FloatTensor<Self> {
        second_order()
    }

    fn product_dw(_dy: FloatTensor<Self>, _x: FloatTensor<Self>) -> FloatTensor<Self> {
        second_order()
    }

    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        applied::<B, C, _, 2>(RmsNorm { eps }, [x, w]).0
    }

    fn rms_norm_gradients(
        _x: FloatTensor<Self>,
        _dy: FloatTensor<Self>,
        _w: FloatTensor<Self>,
        _eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        second_order()
    }

    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (o, (_, logarithms)) = applied::<B, C, _, 3>(Attention { scale }, [q, k, v]);
        (o, <FloatTensor<Self>>::new(logarithms))
    }

    fn causal_attention_gradients(
        _q: FloatTensor<Self>,
        _k: FloatTensor<Self>,
        _v: FloatTensor<Self>,
        _o: FloatTensor<Self>,
        _grad: FloatTensor<Self>,
        _logarithms: FloatTensor<Self>,
        _scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        second_order()
    }
}
