// The tile language (docs/language.md) for editors. It accepts more than the compiler: what a statement may say beside what is the compiler's to check.

const commas = (rule) => seq(rule, repeat(seq(',', rule)));

// From the weakest to the strongest.
const BINARY = [
    ['||'],
    ['&&'],
    ['==', '!='],
    ['<', '<=', '>', '>='],
    ['|'],
    ['^'],
    ['&'],
    ['<<', '>>'],
    ['+', '-'],
    ['*', '/', '%'],
];

module.exports = grammar({
    name: 'tile',

    word: ($) => $.identifier,
    extras: ($) => [/[\s\uFEFF]/, $.line_comment, $.block_comment],
    externals: ($) => [$.block_comment],
    // A word of a clause is a name where `=` follows: `apart = x` begins a statement, and `apart` alone belongs to the copy in front.
    conflicts: ($) => [
        [$.assignment],
        [$.await_statement],
        [$.channel_statement],
        [$.copy_statement],
        [$.initial_copy],
        [$.let_statement],
    ],
    
    rules: {
        source_file: ($) => repeat(choice($.kernel, $.sequence)),

        line_comment: () => token(seq('//', /[^\n]*/)),

        sequence: ($) => seq('sequence', field('name', $.identifier), '{', commas($.identifier), optional(','), '}'),

        // Headers.
        kernel: ($) =>
            seq(
                'kernel',
                field('name', $.identifier),
                optional(seq('<', commas($.compile_time_parameter), '>')),
                '(',
                optional(commas($.parameter)),
                ')',
                repeat(choice($.where_clause, $.grid_clause, $.schedule_clause, $.require_clause)),
                field('body', $.block),
            ),
        compile_time_parameter: ($) =>
            seq(
                field('name', $.identifier),
                choice(
                    seq(':', choice('int', 'type', 'layout', seq($.type, repeat(seq('|', $.type)))), optional($._default)),
                    $._default,
                ),
            ),
        // No expression: a `>` behind it ends the list.
        _default: ($) =>
            seq('=', choice(seq('auto', optional('promised')), 'row', 'col', $.type, $.identifier, seq(optional('-'), $.integer))),
        parameter: ($) =>
            seq(
                field('name', $.identifier),
                ':',
                choice(
                    $.tensor_type,
                    $.cluster_memory,
                    seq('const', $._element, '[', $.integer, ']', '=', '(', commas($._expression), ')'),
                    seq($._element, optional(seq('=', $._expression))),
                ),
            ),
        tensor_type: ($) =>
            seq(
                'gmem',
                $._element,
                '[',
                optional(commas(choice('_', $._dimension))),
                ']',
                optional(choice('row', 'col', $.identifier, $.strides)),
                optional('pointers'),
                optional(choice('scratch', 'signals')),
                optional(seq('multiple', $._expression)),
                optional(seq('align', $.integer)),
                optional('constant'),
            ),
        cluster_memory: ($) => seq('dsmem', $._element, '[', optional(commas($._expression)), ']'),
        strides: ($) =>
            seq(
                'strides',
                '(',
                commas($._dimension),
                ')',
                optional(seq('padded', '(', commas(seq($._expression, ':', $._expression, 'behind', $._expression)), ')')),
            ),
        _dimension: ($) => choice($._expression, $.tuple),
        tuple: ($) => seq('(', $._expression, repeat1(seq(',', $._expression)), ')'),
        where_clause: ($) => seq('where', commas($._expression)),
        grid_clause: ($) => seq('grid', '(', commas($.axis), ')'),
        axis: ($) => seq(field('name', $.identifier), ':', $._expression, optional(seq('over', $._expression))),
        schedule_clause: ($) => seq('schedule', '{', repeat($.schedule_item), '}'),
        schedule_item: ($) =>
            choice(
                seq(field('item', alias('target', $.item)), $.identifier),
                seq(field('item', alias(choice('warp_tile', 'cluster'), $.item)), '(', commas($._expression), ')'),
                seq(
                    field(
                        'item',
                        alias(
                            choice(
                                'threads', 'k_warps', 'ctas', 'stages', 'raster', 'promote', 'pending', 'ping_pong', 'min_ctas', 'align_rows', 'stage_stores', 'stream_k',
                                'split_k', 'queue', 'overlap',
                            ),
                            $.item,
                        ),
                    ),
                    $._expression,
                ),
            ),
        require_clause: ($) => seq('require', commas($.demand)),
        demand: ($) =>
            seq(
                repeat1($.identifier),
                optional(seq(choice('<=', '>='), choice($.integer, $.float), optional('*'), optional($.identifier))),
            ),

        // Types.
        type: () =>
            choice(
                'f16', 'bf16', 'tf32', 'f32', 'f64', 'e4m3', 'e5m2', 'e2m1', 'ue8m0', 'i4', 'u4', 'i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64', 'bool',
            ),
        _element: ($) => choice($.type, $.identifier),
        shape: ($) => seq('[', optional(commas($._expression)), ']'),
        register_tile: ($) =>
            seq(
                'reg',
                $._element,
                $.shape,
                optional(seq('layout', $.layout)),
                optional(seq('partial', choice('sum', 'maximum', 'minimum'), '(', commas($.integer), ')')),
            ),
        buffer: ($) => seq($._element, $.shape, optional(choice('row', 'col')), optional(seq('layout', $.layout))),
        layout: ($) =>
            choice(
                seq($._extents, ':', $._extents, optional(seq('swizzle', '<', commas($.integer), '>'))),
                seq('bits', $.integer, 'thread', $._numbers, 'value', $._numbers),
                seq('bits', '(', commas($._numbers), ')', optional(seq('pitch', $.integer, $.integer))),
            ),
        _extents: ($) => choice($.integer, seq('(', commas($._extents), ')')),
        _numbers: ($) => seq('(', optional(commas($.integer)), ')'),

        // Statements.
        block: ($) => seq('{', repeat($._statement), '}'),
        _statement: ($) =>
            choice(
                $.planned_statement,
                $.let_statement,
                $.var_statement,
                $.assignment,
                $.copy_statement,
                $.for_statement,
                $.while_statement,
                $.if_statement,
                $.role_statement,
                $.ordered_statement,
                $.channel_statement,
                $.await_statement,
                $.signal_statement,
                $.fence_statement,
                $.barrier_statement,
            ),
        planned_statement: ($) => seq($.plan, $._statement),
        plan: ($) =>
            seq(
                '@',
                '(',
                commas(choice('producer', 'ordered', 'open', 'ragged', seq(choice('stage', 'cycle'), $.integer))),
                ')',
            ),
        let_statement: ($) =>
            seq(
                'let',
                choice(
                    seq(
                        field('name', $.identifier),
                        '=',
                        choice(
                            seq('smem', $.buffer, optional(seq('over', commas($.identifier))), optional($.place)),
                            seq(
                                'channel',
                                $.buffer,
                                'slots',
                                $._expression,
                                optional(seq('full', $.integer, 'empty', $.integer)),
                                optional($.place),
                            ),
                            seq($.register_tile, '=', $.initial_copy),
                            $._expression,
                            $.combine,
                        ),
                    ),
                    seq('(', commas(field('name', $.identifier)), ')', '=', $.combine),
                ),
            ),
        place: ($) => seq('at', $.integer, optional(seq('stride', $.integer, optional(seq('barriers', $.integer))))),
        var_statement: ($) =>
            seq('var', field('name', $._word), '=', $.register_tile, optional(seq('=', choice($._expression, $.initial_copy)))),
        initial_copy: ($) => seq('copy', $._expression, repeat($.copy_attribute)),
        assignment: ($) => seq(field('name', $._word), '=', $._expression, optional($._lanes)),
        copy_statement: ($) =>
            seq('copy', field('from', $._expression), '->', field('to', $._expression), repeat($.copy_attribute), optional($._lanes)),
        copy_attribute: ($) =>
            choice(
                seq(choice('vec', 'unaligned'), $.integer),
                seq('threads', $.layout),
                seq('check', $._numbers),
                seq(choice('when', 'old'), $._expression),
                seq('fill', $._expression),
                seq('held', commas($.held)),
                'keep', 'matrix', 'async', 'tma', 'multicast', 'fragment', 'prefetch', 'add', 'min', 'max', 'exchange', 'apart',
            ),
        held: ($) => seq(field('tile', $._word), '(', optional(commas(seq(optional('-'), $.integer))), ')'),
        _lanes: () => choice('elected', 'spread', 'changing'),
        for_statement: ($) =>
            seq(
                'for',
                field('name', $.identifier),
                'in',
                $._expression,
                '..',
                $._expression,
                optional(seq('step', $._expression)),
                optional(seq('while', $._expression)),
                optional(seq('next', $.identifier, 'from', $.identifier)),
                optional('unroll'),
                optional('recompute'),
                optional($._lanes),
                field('body', $.block),
            ),
        while_statement: ($) => seq('while', $._expression, field('body', $.block)),
        if_statement: ($) =>
            seq('if', $._expression, optional('recompute'), $.block, optional(seq('else', choice($.block, $.if_statement, $.planned_statement)))),
        role_statement: ($) =>
            seq(
                'role',
                field('name', $.identifier),
                'warps',
                $._expression,
                optional(seq('replicas', $._expression)),
                optional(seq('registers', $._expression)),
                optional($._lanes),
                field('body', $.block),
            ),
        ordered_statement: ($) =>
            seq('ordered', optional(seq('arrivals', $.integer, optional(seq('at', $.integer)))), field('body', $.block)),
        channel_statement: ($) =>
            seq(
                choice('acquire', 'publish', 'wait', 'release'),
                commas($.identifier),
                optional(seq('pending', $.integer)),
                optional(seq('expect', commas($.integer))),
                optional($._lanes),
            ),
        await_statement: ($) =>
            seq(
                'await',
                $._word,
                choice(
                    seq('[', $._expression, ']'),
                    seq(',', $.integer, optional(seq('after', commas($.identifier))), optional($._lanes)),
                ),
            ),
        signal_statement: ($) => seq('signal', $.identifier, '[', $._expression, ']'),
        fence_statement: () => seq('fence', 'async'),
        barrier_statement: () => 'barrier',

        // Expressions.
        _expression: ($) =>
            choice(
                $._word,
                $.integer,
                $.float,
                $.constant,
                $.parenthesized,
                $.unary,
                $.binary,
                $.view,
                $.slot,
                $.component,
                $.call,
                $.conversion,
                $.product,
            ),
        constant: () => choice('inf', 'nan', 'true', 'false'),
        parenthesized: ($) => seq('(', $._expression, ')'),
        unary: ($) => prec(BINARY.length + 1, seq(field('operator', choice('-', '!', '~')), $._expression)),
        binary: ($) =>
            choice(
                ...BINARY.map((operators, strength) =>
                    prec.left(strength + 1, seq($._expression, field('operator', choice(...operators)), $._expression)),
                ),
            ),
        slot: ($) => prec(BINARY.length + 2, seq(field('channel', $.identifier), '.', choice('put', 'get'))),
        component: ($) => prec(BINARY.length + 2, seq($.identifier, '.', $.integer)),
        view: ($) => prec(BINARY.length + 2, seq(choice($._word, $.slot), '[', optional(commas($.range)), ']')),
        range: ($) =>
            choice(
                '_',
                $._expression,
                seq(optional($._expression), '..', optional(choice($._expression, seq('+', $._expression))), optional(seq('step', $._expression))),
            ),
        call: ($) =>
            prec(
                BINARY.length + 2,
                seq(field('function', choice($.identifier, $.function)), '(', optional(commas($.argument)), ')'),
            ),
        // Those that are names nowhere else; of the others, such as `product`, the place tells.
        function: () =>
            choice(
                'sum', 'maximum', 'minimum', 'ceildiv', 'popcount', 'mul_high', 'permute_bytes', 'random', 'min', 'max', 'fma', 'pow', 'abs', 'exp2', 'exp', 'log2', 'log',
                'sqrt', 'rsqrt', 'tanh', 'fast_tanh', 'erf', 'floor', 'ceil', 'round', 'sin', 'cos', 'select', 'transpose', 'iota',
            ),
        argument: ($) =>
            choice(
                seq($._expression, optional(seq('totals', $._expression))),
                seq($.shape, optional(seq('in', $.shape, optional(seq('at', $.shape))))),
            ),
        conversion: ($) =>
            seq(
                field('function', alias(choice('cast', 'bitcast', 'round_random'), $.function)),
                '<',
                $._element,
                '>',
                '(',
                commas($._expression),
                ')',
            ),
        product: ($) =>
            seq(
                field('function', alias('mma', $.function)),
                optional(seq('<', commas(choice($.identifier, 'fma')), '>')),
                '(',
                commas($._expression),
                ')',
            ),

        // Tuples.
        combine: ($) =>
            seq(
                field('function', alias(choice('reduce', 'scan', 'sort'), $.function)),
                '(',
                commas($._expression),
                ')',
                'along',
                $.integer,
                optional(seq('exclusive', '(', commas($._expression), ')')),
                optional(seq('parts', $._numbers, optional(seq('totals', '(', commas($._expression), ')')))),
                optional(seq('steps', $._numbers)),
                'with',
                '(',
                commas(seq(field('name', $.identifier), optional(seq(':', $._element)))),
                ')',
                ',',
                '(',
                commas(field('name', $.identifier)),
                ')',
                '{',
                repeat($.local),
                'give',
                commas($._expression),
                '}',
            ),
        local: ($) => seq('let', field('name', $.identifier), '=', $._expression),

        _word: ($) => choice($.identifier, alias($._clause_word, $.identifier)),
        _clause_word: () => choice('after', 'apart', 'at', 'changing', 'elected', 'exchange', 'expect', 'fence', 'full', 'held', 'old', 'pending', 'spread'),

        identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
        integer: () => /0[xX][0-9a-fA-F]+|[0-9]+/,
        float: () => /[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/,
    },
});
