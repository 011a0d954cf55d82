// Package gang brings hosts together whose devices share one model.
//
// Glossary. A *gang* is the hosts of one life of an engine. Its *leader* is the host where the engine was asked for and where
// rank 0 runs; the others are *members*, each with a *place* from 1 on. The leader *calls*: it listens, and whoever brings
// members gives them its *invitation*. A member joins, takes its devices and says that it is ready; once all are, each gets
// its *orders*, with which its ranks meet the leader's under torchrun.
//
// The connection between member and leader lives as long as the gang: each side hears at once when the other's process ends,
// and within Silence when its host or the network does. So neither ranks nor leases outlive their gang, whoever dies. Nothing
// here knows who anybody is beyond the invitation's identity, and torchrun's rendezvous knows less: both belong on a
// network that is the hosts' own.
package gang
