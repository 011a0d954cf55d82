// Command versitygw is Versity's S3 gateway over a plain folder: the flags of its own program that
// the local stack uses, without its other back ends (Azure, S3, ScoutFS), its IAM server and its own
// test suite, which take a third of the time to build and are never used here.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// The defaults of Versity's own program.
const (
	maxConnections = 250000
	maxRequests    = 100000
	maxParts       = 10000
	concurrency    = 5000
	bufferSize     = 1 << 20
	copyThreshold  = 5 << 30
	accountsFor    = 120   // seconds for which accounts are remembered
	accountsPruned = 3600  // seconds between removals of those that are not used
	folderMode     = 0o755 // less the umask
	fileMode       = 0o644
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "versitygw:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := &embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"),
		MaxConnections: maxConnections, MaxRequests: maxRequests, MultipartMaxParts: maxParts, Version: "local stack",
	}
	global := flag.NewFlagSet("versitygw", flag.ContinueOnError)
	port := global.String("port", ":7070", "`address` to listen on")
	global.StringVar(&c.Region, "region", "us-east-1", "region's `name`")
	global.StringVar(&c.HealthPath, "health", "", "`path` that answers without credentials")
	global.BoolVar(&c.Quiet, "quiet", false, "log no requests")
	global.StringVar(&c.IAMDir, "iam-dir", "", "`folder` of accounts next to the root account's")
	global.StringVar(&c.CertFile, "cert", "", "`file` of the certificate for TLS")
	global.StringVar(&c.KeyFile, "key", "", "`file` of the certificate's key")
	if err := global.Parse(args); err != nil {
		return err
	}
	c.Ports = []string{*port}
	c.IAMCacheTTL, c.IAMCachePrune = accountsFor, accountsPruned
	c.KeepAlive = true // a connection for each request costs more than the request
	c.S3Options = []s3api.Option{s3api.WithMiddleware("/", closeAfterChunks)}
	if global.Arg(0) != "posix" {
		return fmt.Errorf("unknown back end %q: this build has posix alone", global.Arg(0))
	}
	local := flag.NewFlagSet("posix", flag.ContinueOnError)
	sidecar := local.String("sidecar", "", "`folder` for metadata, where the file system has no extended attributes")
	versions := local.String("versioning-dir", "", "`folder` for earlier versions; without it the server has none")
	if err := local.Parse(global.Args()[1:]); err != nil {
		return err
	}
	if local.NArg() != 1 {
		return fmt.Errorf("want one folder to serve, got %d", local.NArg())
	}
	back, err := open(local.Arg(0), *sidecar, *versions)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, back, c)
}

// closeAfterChunks has a connection closed after a body without Content-Length, in which minio-go
// sends empty objects. The server does not read such a body to its end, and would take the rest for
// the next request.
func closeAfterChunks(ctx fiber.Ctx) error {
	err := ctx.Next()
	if ctx.Request().Header.ContentLength() == -1 {
		ctx.Response().Header.SetConnectionClose()
	}
	return err
}

func open(root, sidecar, versions string) (*posix.Posix, error) {
	o := posix.PosixOpts{Concurrency: concurrency, IOBufferSize: bufferSize, CopyObjectThreshold: copyThreshold,
		SideCarDir: sidecar, VersioningDir: versions}
	o.SetNewDirPerm(folderMode)
	o.SetNewFilePerm(fileMode)
	var metadata meta.MetadataStorer = meta.XattrMeta{}
	if sidecar != "" {
		s, err := meta.NewSideCar(sidecar)
		if err != nil {
			return nil, fmt.Errorf("use the folder for metadata: %w", err)
		}
		metadata = s
	} else if err := (meta.XattrMeta{}).Test(root); err != nil {
		return nil, fmt.Errorf("use extended attributes of %s: %w", root, err)
	}
	back, err := posix.New(root, metadata, o)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", root, err)
	}
	return back, nil
}
