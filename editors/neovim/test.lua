-- What a person does in Neovim with a program, with the configuration of docs/editor.md. See scripts/neovim_test.sh.

local api, lsp = vim.api, vim.lsp
local function say(text) io.stdout:write(text, "\n") end

-- Waits until something holds that a server or a timer brings about.
local function wait(what, holds)
  local found
  vim.wait(40000, function() found = holds(); return found end, 20)
  return found or error("waited in vain for " .. what)
end

local function equal(a, b, what)
  if not vim.deep_equal(a, b) then error(("%s: %s, expected %s"):format(what, vim.inspect(a), vim.inspect(b))) end
end

local function lines() return api.nvim_buf_get_lines(0, 0, -1, false) end

-- Puts the cursor on the nth place of a text, `on` characters into it.
local function go(text, nth, on)
  for row, line in ipairs(lines()) do
    local from = 1
    while true do
      local at = line:find(text, from, true)
      if not at then break end
      nth = nth - 1
      if nth == 0 then
        api.nvim_win_set_cursor(0, { row, at - 1 + (on or 0) })
        return row, at - 1
      end
      from = at + 1
    end
  end
  error("there is no `" .. text .. "`")
end

local function ask(method, params)
  local answers = lsp.buf_request_sync(0, method, params, 40000)
  local answer = answers and vim.tbl_values(answers)[1] or error(method .. " is not answered")
  if answer.error then error(method .. ": " .. vim.inspect(answer.error)) end
  return answer.result
end

local function here() return lsp.util.make_position_params(0, "utf-16") end

local function diagnostics(holds)
  return wait("diagnostics", function()
    local all = vim.diagnostic.get(0)
    return holds(all) and all
  end)
end

local function errors(all)
  return vim.tbl_filter(function(d) return d.severity == vim.diagnostic.severity.ERROR end, all)
end

local tests = {}

tests[#tests + 1] = { "the server starts for the file type", function()
  equal(vim.bo.filetype, "tile", "file type")
  local client = wait("a client", function() return lsp.get_clients({ bufnr = 0 })[1] end)
  equal(client.name, "tilec", "client")
  wait("its start", function() return client.initialized end)
end }

tests[#tests + 1] = { "hover", function()
  go("acc", 1)
  local text = vim.inspect(ask("textDocument/hover", here()))
  assert(text:find("acc"), text)
end }

tests[#tests + 1] = { "definition and references", function()
  local row = go("acc", 1)
  local uses = ask("textDocument/references", vim.tbl_extend("force", here(), { context = { includeDeclaration = true } }))
  assert(#uses > 2, vim.inspect(uses))
  api.nvim_win_set_cursor(0, { uses[#uses].range.start.line + 1, uses[#uses].range.start.character })
  -- The editor itself goes there.
  lsp.buf.definition()
  wait("the cursor at the definition", function() return api.nvim_win_get_cursor(0)[1] == row end)
end }

tests[#tests + 1] = { "rename, and undone", function()
  local before = lines()
  go("acc", 1)
  lsp.buf.rename("total")
  wait("the new name", function() return table.concat(lines(), "\n"):find("%f[%w_]total%f[^%w_]") end)
  assert(not table.concat(lines(), "\n"):find("%f[%w_]acc%f[^%w_]"), "a use keeps its name")
  vim.cmd("undo")
  equal(lines(), before, "undone")
end }

tests[#tests + 1] = { "completion", function()
  local row = go("let ", 1)
  api.nvim_buf_set_lines(0, row - 1, row - 1, false, { "    sch" })
  api.nvim_win_set_cursor(0, { row, 7 })
  local got = ask("textDocument/completion", here())
  assert(#(got.items or got) > 0, "nothing to complete")
  vim.cmd("undo")
end }

tests[#tests + 1] = { "a mistake, its code, and the action that mends it", function()
  diagnostics(function(all) return #errors(all) == 0 end)
  local before = lines()
  local row = go("let ", 1)
  api.nvim_buf_set_lines(0, row - 1, row, false, { (before[row]:gsub("let ", "lte ", 1)) })
  local wrong = errors(diagnostics(function(all) return #errors(all) > 0 end))[1]
  equal(wrong.lnum, row - 1, "its line")
  assert(tostring(wrong.code):match("^E%d%d%d%d$"), vim.inspect(wrong))
  api.nvim_win_set_cursor(0, { wrong.lnum + 1, wrong.col })
  lsp.buf.code_action({ apply = true, filter = function(a) return a.title:find("let") ~= nil end })
  wait("the mended line", function() return lines()[row] == before[row] end)
  diagnostics(function(all) return #errors(all) == 0 end)
end }

tests[#tests + 1] = { "inlay hints", function()
  lsp.inlay_hint.enable(true, { bufnr = 0 })
  local all = wait("hints", function()
    local got = lsp.inlay_hint.get({ bufnr = 0 })
    return #got > 0 and got
  end)
  assert(all[1].inlay_hint.label, vim.inspect(all[1]))
end }

tests[#tests + 1] = { "semantic tokens", function()
  local row, column = go("acc", 1)
  local tokens = wait("tokens", function()
    local got = lsp.semantic_tokens.get_at_pos(0, row - 1, column)
    return got and #got > 0 and got
  end)
  equal(tokens[1].type, "variable", "type")
end }

tests[#tests + 1] = { "formatting", function()
  local before = lines()
  local row = go("let ", 1)
  api.nvim_buf_set_lines(0, row - 1, row, false, { "      " .. before[row] })
  lsp.buf.format({ async = false, timeout_ms = 20000 })
  equal(lines(), before, "formatted")
end }

tests[#tests + 1] = { "tree-sitter reads and colours the program", function()
  assert(vim.treesitter.highlighter.active[api.nvim_get_current_buf()], "it does not colour")
  local examples = vim.fn.glob("examples/*.tile", false, true)
  assert(#examples > 20, "examples")
  for _, file in ipairs(examples) do
    local text = table.concat(vim.fn.readfile(file), "\n") .. "\n"
    local tree = vim.treesitter.get_string_parser(text, "tile"):parse()[1]
    assert(not tree:root():has_error(), file .. " is not read")
  end
  vim.treesitter.get_parser(0):parse()
  local function captured(text, nth, on)
    local row, column = go(text, nth, on)
    local at = vim.treesitter.get_captures_at_pos(0, row - 1, column + (on or 0))
    return vim.tbl_map(function(c) return c.capture end, at)
  end
  assert(vim.tbl_contains(captured("//", 1), "comment"), "comments")
  assert(vim.tbl_contains(captured("kernel gemm", 1), "keyword"), "keywords")
  assert(vim.tbl_contains(captured("kernel gemm", 1, 7), "function"), "names of kernels")
  assert(vim.tbl_contains(captured("Acc: f32", 1, 5), "type"), "types")
end }

local failed = false
for _, test in ipairs(tests) do
  local start = vim.uv.hrtime()
  local fine, said = xpcall(test[2], debug.traceback)
  say(("neovim: %s: %s"):format(test[1], fine and ("%d ms"):format((vim.uv.hrtime() - start) / 1e6) or ("FAILED\n" .. said)))
  failed = failed or not fine
end
if not failed then say("neovim: fine, version " .. tostring(vim.version())) end
