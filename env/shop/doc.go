// Package shop is a shop in text, with the pages, actions and score of WebShop.
//
// A *catalogue* is a list of generated *products*. A product is of a *kind* (t-shirt, hdmi cable), and has *attributes*
// (machine washable), *options* (color: red, blue), a price, and texts: title, features, description and reviews. The
// agent searches the catalogue by words, opens products, chooses values of their options, and buys one. A *goal* names
// the kind, attributes and option values of a product, and a price that it must not exceed. The purchase ends the
// episode and has a *score* from 0 to 1. A purchase with score 1 is the success and pays 10; nothing else pays.
//
//	New(Settings) ─ catalogue ─┬ Task → Reset → Step … → Transition{Done, Success}
//	                           ├ index: full-text search, made at the first search of a process
//	                           └ Solve: the expert, who knows which products reach the goal
//
// Source: Yao et al., WebShop (NeurIPS 2022) and its released environment define pages, actions and score. ARLArena
// (App. H.2.2, Table S1) defines how a page is shown, the admissible actions, the reward and the limit of 15 turns.
package shop
