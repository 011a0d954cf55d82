// Package imports holds the levels of the tree and the rules about which package may import which. Its tests compare
// them with the output of the go command.
//
// A package imports packages of lower levels only (Levels). So the packages can be read from the bottom up, a change
// affects only the levels above it, and there is no import cycle. A *room* is a package and all packages below it. A
// rule names a room's own imports, or everything that it depends on.
package imports
