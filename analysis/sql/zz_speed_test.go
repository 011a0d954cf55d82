package sql_test
import ("context";"testing";"time"
"github.com/stretchr/testify/require"
"github.com/ropewalk/ropewalk/analysis"
"github.com/ropewalk/ropewalk/analysis/recordtest"
"github.com/ropewalk/ropewalk/analysis/sql"
"github.com/ropewalk/ropewalk/store/s3"
"github.com/ropewalk/ropewalk/store/storetest"
)
func TestZZ(t *testing.T){
 v0:=storetest.Versitygw(t)
 objects,err:=s3.New(s3.Options{Endpoint:v0.Endpoint,Region:"us-east-1",Bucket:"b-test",AccessKey:v0.AccessKey,SecretKey:v0.SecretKey}); require.NoError(t,err)
 require.NoError(t, objects.EnsureBucket(context.Background()))
 st:=time.Now(); recordtest.Train(t, objects, recordtest.Options{Run:"long",Steps:120,Seed:1,Created:"2026-01-02T03:04:05Z"}); t.Log("made",time.Since(st))
 dir:=t.TempDir()
 for _,q:=range []string{"select step, avg(reward) from rewards group by 1","select step, avg(reward) from rewards group by 1","select avg(len(token_ids)) from turns","select count(*) from timings","select count(*) from timings"}{
 st=time.Now(); r,err:=sql.Query(context.Background(), sql.Options{Store:objects,Cache:dir,Query:q}); require.NoError(t,err); t.Log(q,time.Since(st),len(r.Rows))}
 rec:=analysis.New(objects)
 st=time.Now(); v,err:=rec.Verify(context.Background(),"long"); require.NoError(t,err); t.Log("verify",time.Since(st),v.Manifests,v.Shards,len(v.Faults))
 st=time.Now(); _,err=rec.Overview(context.Background(),"long"); require.NoError(t,err); t.Log("overview",time.Since(st))
 st=time.Now(); _,err=rec.Figures(context.Background(),"long"); require.NoError(t,err); t.Log("figures",time.Since(st))
}
