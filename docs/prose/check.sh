#!/usr/bin/env bash
# Checks the English of docs, messages and docstrings. $1 is the Python that has Endoscope.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ -x node_modules/.bin/textlint ] || npm ci --silent
sheet="$(mktemp -d)/messages.md"
trap 'rm -r "$(dirname "$sheet")"' EXIT
"$1" sheet.py > "$sheet"
find .. -name node_modules -prune -o -name '*.md' -print0 | xargs -0 node_modules/.bin/textlint --rulesdir rules "$sheet"
PROSE=README node_modules/.bin/textlint --rulesdir rules ../../README.md
