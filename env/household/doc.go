// Package household is a house in text, with the six task types, texts and commands of ALFWorld.
//
// A task takes place in one *room*: a kitchen, a living room, a bedroom or a bathroom. A room has *places* (cabinets,
// tables, a fridge), some with a door, and *things* that lie in or on places. The agent is in the middle of the room or
// at one place. It sees what lies at its place, unless a closed door hides it, and it carries at most one thing. The
// six task types are pick, look, clean, heat, cool and two (README.md has their goals). The turn that reaches the goal
// pays 10, and no other turn pays anything. An episode ends at the goal or at the limit of turns.
//
// A *layout* is a room without its things: the places, their doors and the lamps. The layouts that training never shows
// are *unseen*. Tasks are generated from seeds: a draw chooses a layout, a goal, the things and where they lie.
//
// With a folder of games, the tasks are ALFWorld's own: a game's file holds the room, the goal and the words. There,
// several places can share a *location*, and a thing can lie in two places.
//
//	New(Settings) ─ layouts → Task → Reset → Step … → Transition{Done, Success}
//	                                   └ Solve: the expert. It searches the room as one who sees only what is shown.
//	Settings.Games ─ readGame → game → Task → Reset …: one of ALFWorld's own games, instead of a generated room
//
// Source: Shridhar et al., ALFWorld (ICLR 2021); the domain and the grammar of its Python package, version 0.4.2,
// define the commands and texts. ARLArena §3.2 and Table S1 define the reward, the limit of 50 turns and what is
// invalid.
package household
