//! The dense `mma.sync` forms: shapes, types, and registers (PTX ISA 9.7.14.5).

/// Shape of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Four 8x8x4 products, one per quad pair.
    M8N8K4,
    /// 8x8x16, 8-bit integers.
    M8N8K16,
    /// 16x8x4, tf32.
    M16N8K4,
    /// 16x8x8, f16, bf16, tf32.
    M16N8K8,
    /// 16x8x16, f16, bf16, 8-bit types.
    M16N8K16,
    /// 16x8x32, 8-bit types.
    M16N8K32,
}

impl Shape {
    /// Rows of A and C.
    #[must_use]
    pub const fn m(self) -> usize {
        match self {
            Shape::M8N8K4 | Shape::M8N8K16 => 8,
            Shape::M16N8K4 | Shape::M16N8K8 | Shape::M16N8K16 | Shape::M16N8K32 => 16,
        }
    }

    /// Columns of A, rows of B.
    #[must_use]
    pub const fn k(self) -> usize {
        match self {
            Shape::M8N8K4 | Shape::M16N8K4 => 4,
            Shape::M16N8K8 => 8,
            Shape::M8N8K16 | Shape::M16N8K16 => 16,
            Shape::M16N8K32 => 32,
        }
    }
}

/// Element types of A and B. f64 has entry points of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: an f32 whose low 13 bits are ignored
    Tf32,
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
    /// `.s8`
    S8,
    /// `.u8`
    U8,
}

impl Elem {
    /// Elements in a 32-bit register.
    #[must_use]
    pub const fn per_register(self) -> usize {
        match self {
            Elem::Tf32 => 1,
            Elem::F16 | Elem::Bf16 => 2,
            Elem::E4m3 | Elem::E5m2 | Elem::S8 | Elem::U8 => 4,
        }
    }
}

/// Element types of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acc {
    /// `.f16`, two to a register
    F16,
    /// `.f32`
    F32,
    /// `.s32`
    S32,
}

/// Order of an operand in the names of an instruction; only m8n8k4 has a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `.row`
    Row,
    /// `.col`
    Col,
}

/// A legal instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Shape.
    pub shape: Shape,
    /// Order of A.
    pub a_layout: Layout,
    /// Order of B.
    pub b_layout: Layout,
    /// Type of A.
    pub a: Elem,
    /// Type of B.
    pub b: Elem,
    /// Type of C.
    pub c: Acc,
    /// Type of D.
    pub d: Acc,
    /// `.satfinite` of integers.
    pub satfinite: bool,
}

/// 32-bit registers of each operand of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registers {
    /// Registers of A.
    pub a: usize,
    /// Registers of B.
    pub b: usize,
    /// Registers of C.
    pub c: usize,
    /// Registers of D.
    pub d: usize,
}

impl Form {
    /// The form if PTX has it.
    #[must_use]
    pub fn checked(self) -> Option<Form> {
        use Shape::{M8N8K4, M8N8K16, M16N8K4, M16N8K8, M16N8K16, M16N8K32};
        let (f16, f32_, s32) = (
            (self.c, self.d) == (Acc::F16, Acc::F16),
            (self.c, self.d) == (Acc::F32, Acc::F32),
            (self.c, self.d) == (Acc::S32, Acc::S32),
        );
        let mixed = (self.c, self.d) == (Acc::F16, Acc::F32);
        let row_col = (self.a_layout, self.b_layout) == (Layout::Row, Layout::Col);
        let same = self.a == self.b;
        let integers = matches!(self.a, Elem::S8 | Elem::U8) && matches!(self.b, Elem::S8 | Elem::U8);
        let fp8 = matches!(self.a, Elem::E4m3 | Elem::E5m2) && matches!(self.b, Elem::E4m3 | Elem::E5m2);
        let legal = match self.shape {
            M8N8K4 => same && self.a == Elem::F16 && (f16 || f32_ || mixed),
            M8N8K16 => row_col && integers && s32,
            M16N8K4 => row_col && same && self.a == Elem::Tf32 && f32_,
            M16N8K8 => match self.a {
                Elem::F16 => row_col && same && (f16 || f32_),
                Elem::Bf16 | Elem::Tf32 => row_col && same && f32_,
                Elem::E4m3 | Elem::E5m2 | Elem::S8 | Elem::U8 => false,
            },
            M16N8K16 => match self.a {
                Elem::F16 => row_col && same && (f16 || f32_),
                Elem::Bf16 => row_col && same && f32_,
                Elem::Tf32 => false,
                Elem::E4m3 | Elem::E5m2 => row_col && fp8 && (f16 || f32_),
                Elem::S8 | Elem::U8 => row_col && integers && s32,
            },
            M16N8K32 => row_col && (fp8 && (f16 || f32_) || integers && s32),
        };
        (legal && (!self.satfinite || integers)).then_some(self)
    }

    /// Registers of its operands.
    #[must_use]
    pub const fn registers(&self) -> Registers {
        let per = self.a.per_register();
        let products = if matches!(self.shape, Shape::M8N8K4) { 4 } else { 1 };
        let lanes = 32 / products;
        let outputs = self.shape.m() * 8 / lanes;
        Registers {
            a: self.shape.m() * self.shape.k() / per / lanes,
            b: 8 * self.shape.k() / per / lanes,
            c: if matches!(self.c, Acc::F16) { outputs / 2 } else { outputs },
            d: if matches!(self.d, Acc::F16) { outputs / 2 } else { outputs },
        }
    }
}
