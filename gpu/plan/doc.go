// Package plan estimates what a model's update takes of a device, and what it makes of it, from sizes alone.
//
// Glossary. A *master* is a weight in float32, which the optimiser changes; where the model computes in other numbers it
// holds a rounded *copy* beside it. *Activations* are what a forward pass keeps for its backward pass. With
// *checkpointing* only the input of each layer is kept, and a layer's activations are computed again when its turn comes.
// *Model flops* count the matrix products of the model's definition once, forward and backward: what checkpointing
// computes again earns nothing (Chowdhery et al. 2022, "PaLM", appendix B). *MFU*, model flops utilisation, is their
// pace over the devices' greatest.
package plan
