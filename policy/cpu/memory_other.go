//go:build !linux

package cpu

func adviseHuge[T any]([]T) {}
