// Package rl holds the algorithms of agentic policy optimisation; its subpackages are pure
// functions, and this one only tests them together.
package rl
