package shop

import "flag"

// update rewrites golden files and the shop's episode in docs/environments.md.
var update = flag.Bool("update", false, "rewrite golden files and docs/environments.md")
