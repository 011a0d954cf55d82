// Package replay holds the stages that plan, compare and check replays of a step's stages.
package replay
