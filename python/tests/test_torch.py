"""The package with PyTorch on the CPU: tensors on the simulator, operators, autograd, torch.compile."""

import pathlib
import unittest

import torch

import tilec

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PRODUCT = """kernel product(A: gmem f32[M, K], B: gmem f32[K, N], C: gmem f32[M, N]) grid (i: ceildiv(M, 32), j: ceildiv(N, 32)) {
    let a = smem f32[32, 16]
    let b = smem f32[16, 32]
    var acc = reg f32[32, 32] = 0.0
    for k in 0..K step 16 {
        copy A[i * 32.., k..] -> a
        copy B[k.., j * 32..] -> b
        acc = mma(a, b, acc)
    }
    copy acc -> C[i * 32.., j * 32..]
}
"""


class Tensors(unittest.TestCase):
    def test_products_of_several_types(self) -> None:
        for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
            gemm = tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", T=name, BM=64, BN=64)
            a, b = torch.randint(-4, 5, (40, 24)).to(dtype), torch.randint(-4, 5, (24, 72)).to(dtype)
            c = torch.full((40, 72), float("nan"))
            gemm(a, b, c)
            self.assertTrue(torch.equal(c, a.float() @ b.float()))


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        kernel = tilec.compile(PRODUCT, target="sm_80")

        def setup(ctx: object, inputs: tuple, output: object) -> None:
            ctx.save_for_backward(*inputs)

        def backward(ctx: object, grad: torch.Tensor) -> tuple:
            a, b = ctx.saved_tensors
            return cls.product(grad.contiguous(), b.t().contiguous()), cls.product(a.t().contiguous(), grad.contiguous())

        cls.product = staticmethod(kernel.register("tilec_tests::product", backward=backward, setup_context=setup))

    def test_results_and_gradients(self) -> None:
        a = torch.randint(-4, 5, (40, 24)).float().requires_grad_()
        b = torch.randint(-4, 5, (24, 72)).float().requires_grad_()
        c = self.product(a, b)
        self.assertTrue(torch.equal(c, a @ b))
        c.sum().backward()
        self.assertTrue(torch.equal(a.grad, torch.ones(40, 72) @ b.detach().t()))
        self.assertTrue(torch.equal(b.grad, a.detach().t() @ torch.ones(40, 72)))

    def test_fake_tensors_have_the_shape(self) -> None:
        a, b = torch.ones(40, 24, device="meta"), torch.ones(24, 72, device="meta")
        self.assertEqual(self.product(a, b).shape, (40, 72))
        torch.library.opcheck(self.product, (torch.ones(40, 24), torch.ones(24, 72)))

    def test_compiled(self) -> None:
        compiled = torch.compile(lambda a, b: self.product(a, b) + 1, backend="aot_eager", fullgraph=True)
        for m in (40, 56):
            a, b = torch.ones(m, 24), torch.ones(24, 72)
            self.assertTrue(torch.equal(compiled(a, b), a @ b + 1))


if __name__ == "__main__":
    unittest.main()
