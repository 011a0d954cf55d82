// Package engines connects workers and recipes to the PyTorch engine: Torch opens engines for a worker (it implements
// enginepool.Torch), and PlanHere tells which engine a recipe would get on this machine and what memory it would take.
package engines
