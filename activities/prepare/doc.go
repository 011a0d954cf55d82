// Package prepare holds the stages that begin a run: it resolves, checks and commits the recipe, takes the model that
// the recipe names into the store, and changes the recipe of a live run.
package prepare
