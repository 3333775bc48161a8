#!/usr/bin/env bash
# Makes a site of the documents: target/site/index.html, which needs no network.
#
#   scripts/site.sh              # installs the pinned mdBook once, by cargo (the only step with a network), and builds
#   scripts/site.sh --test       # builds where mdBook is there already, and says that it is skipped where it is not
#   scripts/site.sh --stage      # only puts the source of the book together, in target/site-src
#
# Links of the site are checked then: pages, places in pages, pictures, and that nothing needs a network.
# mdBook goes into $TILEC_TOOLS, else $XDG_CACHE_HOME/tilec/tools, else ~/.cache/tilec/tools. An mdbook of the same version on PATH is taken instead.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.4.48
stage=target/site-src
python3 scripts/book.py "$stage"
if [ "${1-}" = --stage ]; then exit 0; fi

tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tools}
mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ] || [ "$("$mdbook" --version)" != "mdbook v$version" ]; then
    mdbook=$tools/mdbook-$version/bin/mdbook
    if [ ! -x "$mdbook" ]; then
        if [ "${1-}" = --test ]; then
            echo "skipped: scripts/site.sh: mdBook $version is not there"
            exit 0
        fi
        cargo install mdbook --version "=$version" --locked --no-default-features --features search --root "$tools/mdbook-$version"
    fi
fi
"$mdbook" build "$stage" --dest-dir "$PWD/target/site"
python3 scripts/site_links.py target/site
echo "target/site/index.html"
