package activities

import (
	"log/slog"
	"testing"

	"github.com/ropewalk/ropewalk/tool/mcp/mcptest"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // as quiet as the program
	mcptest.Main(m)
}
