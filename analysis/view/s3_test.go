package view_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store/s3"
)

// A record on an S3 server is viewed like one in a folder.
func TestRecordOnS3(t *testing.T) {
	server := storetest.Versitygw(t)
	const bucket = "record"
	recordtest.Unpack(t, train(t, recordtest.Options{}), filepath.Join(server.Folder, bucket))
	objects, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	s := serve(t, objects, "r")
	s.complete(2)
	require.EqualValues(t, 24, s.list(nil).Summary.Count)
	var c view.Closeup
	require.Equal(t, http.StatusOK, s.ask("trajectory?id=00002/0001/000", &c))
	require.Len(t, c.Turns, 2)
	var f view.Figures
	require.Equal(t, http.StatusOK, s.ask("figures", &f))
	require.Equal(t, 2, f.StepsDone)
}
