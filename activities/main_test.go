package activities

import (
	"log/slog"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/mcptest"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // as quiet as the program
	mcptest.Main(m)
}
