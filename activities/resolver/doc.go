// Package resolver reads the recipes that runs follow, and makes what follows from a recipe and the record alone: its
// environment, its tokenizer, its tools, its agent loop and the tasks that the run keeps. What it has made it
// remembers, for a bounded number of recipes.
package resolver
