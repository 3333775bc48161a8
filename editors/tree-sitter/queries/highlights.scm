; Captures of the names that Neovim, Helix and Zed share.

(line_comment) @comment
(block_comment) @comment

(kernel name: (identifier) @function)
(sequence name: (identifier) @function)
(role_statement name: (identifier) @label)

(type) @type
(integer) @number
(float) @number
(constant) @constant

(call function: (identifier) @function)
(call function: (function) @function)
(conversion function: (function) @function)
(product function: (function) @function)
(combine function: (function) @function)

(compile_time_parameter name: (identifier) @constant)
(parameter name: (identifier) @variable.parameter)
(axis name: (identifier) @variable)
(let_statement name: (identifier) @variable)
(var_statement name: (identifier) @variable)
(for_statement name: (identifier) @variable)
(assignment name: (identifier) @variable)
(schedule_item item: (item) @property)
(demand (identifier) @property)

[
  "kernel" "sequence" "where" "grid" "schedule" "require" "over"
  "let" "var" "copy" "for" "in" "step" "while" "if" "else" "role" "warps" "replicas" "registers" "ordered" "arrivals"
  "await" "after" "signal" "acquire" "publish" "wait" "release" "pending" "expect" "next" "from" "unroll" "recompute" "slots" "give" "along" "with" "steps" "totals"
  "auto" "promised" "behind" "at" "stride" "barriers" "full" "empty" "put" "get"
  (barrier_statement) (fence_statement)
] @keyword

[
  "gmem" "dsmem" "smem" "const" "reg" "channel" "layout" "partial" "row" "col" "strides" "padded" "pointers" "scratch" "signals" "multiple" "align" "constant" "int" "swizzle"
] @keyword

(copy_attribute) @keyword
(plan) @attribute

[
  "->" ".." "=" "==" "!=" "<" "<=" ">" ">=" "&&" "||" "|" "^" "&" "<<" ">>" "+" "-" "*" "/" "%" "!" "~" ":"
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "."] @punctuation.delimiter
