// Comments `/* .. */`, which nest: no regular expression matches them.

#include "tree_sitter/parser.h"

enum { BLOCK_COMMENT };

void *tree_sitter_tile_external_scanner_create(void) { return NULL; }
void tree_sitter_tile_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_tile_external_scanner_serialize(void *payload, char *buffer) {
    (void)payload;
    (void)buffer;
    return 0;
}
void tree_sitter_tile_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
    (void)payload;
    (void)buffer;
    (void)length;
}

static bool is_space(int32_t c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xFEFF; }

bool tree_sitter_tile_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
    (void)payload;
    if (!valid[BLOCK_COMMENT]) return false;
    while (is_space(lexer->lookahead)) lexer->advance(lexer, true);
    if (lexer->lookahead != '/') return false;
    lexer->advance(lexer, false);
    if (lexer->lookahead != '*') return false;
    lexer->advance(lexer, false);
    for (unsigned depth = 1; depth > 0;) {
        if (lexer->eof(lexer)) return false;
        int32_t first = lexer->lookahead;
        lexer->advance(lexer, false);
        if (first == '*' && lexer->lookahead == '/') {
            lexer->advance(lexer, false);
            depth -= 1;
        } else if (first == '/' && lexer->lookahead == '*') {
            lexer->advance(lexer, false);
            depth += 1;
        }
    }
    lexer->result_symbol = BLOCK_COMMENT;
    return true;
}
