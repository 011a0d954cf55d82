// Package sokoban is the puzzle of pushing boxes onto targets, with the rules and rewards of gym-sokoban.
//
// A *room* is a grid of walls and floor with the player and as many targets as boxes. An action moves the player by one
// cell. If there is a box in the way, the action pushes the box, provided that the cell behind it is free. Boxes cannot
// be pulled. A turn costs 0.1. Pushing a box onto a target brings 1; pushing one off a target costs 1. The turn that
// leaves every box on a target brings 10 more and ends the episode. An episode also ends at a limit of turns: 15 in the
// papers (000 Table 8, 002 Table S1), 120 in gym-sokoban.
//
// The environment searches an action's text, in lower case, for up, down, left, right and still, in this order, as
// ARLArena does. Text with none of these words is invalid: the player does not move, and the turn costs the usual 0.1.
//
// Tasks are *levels* read from files in Boxoban's form, or small generated rooms. The generator works backwards: a
// search from the solved room pulls the boxes away. So the number of moves of a shortest solution is known and lies
// within the limit of turns. The task's id decides whether the task is held out; one eighth of all tasks is.
//
//	New(Settings) → Task → Reset → Step … → Transition{Done, Success}
//	                  Solve: the shortest solution in moves (A* over pushes), the expert
package sokoban
