// Package tinkertest is a server that speaks the Tinker API, for tests: LoRA adapters of a small base, trained with the
// gradients of the CPU engine. It can divide gradients in the ways of different servers, and a test can take requests
// away from it.
//
// The gradient of an adapter follows from that of the whole weight: for W + s·B·A it is dB = s·dW·Aᵀ and dA = s·Bᵀ·dW.
// The engine gives dW as the move of one optimiser step whose epsilon is far greater than any gradient.
package tinkertest
