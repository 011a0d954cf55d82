// Package early gets verdicts on the answers of a shard before the shard's stages ask for them.
package early
