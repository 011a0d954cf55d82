// Package activities brings the stages of all topics together and registers them with a worker. Each stage fetches the
// rows behind its references, calls one domain package, and commits the result. Only the packages below this folder
// bring store, schema and the domain packages together.
//
// Four services serve the stages of a worker: its *records* are what runs have committed (record), its *recipes* what
// they follow (resolver), and its *execution* and *engines* run programs and models (resource). They meet in
// stage.Worker, the frame of every stage. The stages of a topic are a package: prepare, data, warmstart, episodes,
// verdict, learn, evaluate, replay and upkeep.
package activities
