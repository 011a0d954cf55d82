// Package imports holds the rules of who may import whom, as a test over what the go command lists.
//
// A *room* is a package and those below it. A rule looks either at a room's own import lines or at
// everything that it reaches through them.
package imports
