// Package plan estimates, from sizes alone, how much memory a model's update needs on a device and how well it uses the
// device.
//
// Glossary. A *master* is a float32 weight, which the optimiser changes. If the model computes in another type, it also
// holds a rounded *copy*. *Activations* are the values that a forward pass keeps for its backward pass. With
// *checkpointing*, only the input of each layer is kept, and the backward pass computes a layer's activations again
// when it reaches the layer. *Model flops* count the matrix products of the model's definition once, forward and
// backward; products that checkpointing repeats do not count (Chowdhery et al. 2022, "PaLM", appendix B). *MFU*, model
// flops utilisation, is the rate of model flops divided by the devices' peak rate.
package plan
