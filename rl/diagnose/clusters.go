package diagnose

// How varied the trajectories of a rollout are: clusters of their embeddings in a plane (AEPO figure 6, appendix D).
// The paper embeds texts by BGE-M3, projects them by principal components and clusters them by DBSCAN (Ester et al.
// 1996). Departures: the embedding needs no model. It counts the runs of one to three tokens that the policy wrote,
// each hashed (FNV-1a) to one of 128 coordinates and a sign (Weinberger et al. 2009), with the weight 1 + ln(count), at
// length 1. It says what trajectories have in common word for word, not what they mean, and only those of one
// tokenizer can be compared. The paper names neither DBSCAN's radius nor its least number: the number is 4, as in Ester
// et al., and the radius is the 90th percentile of the distances to the fourth nearest point, itself counted.

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	embeddingWidth = 128
	longestRun     = 3   // tokens
	dense          = 4   // points within the radius that make a point part of a cluster, itself included
	sparse         = 0.9 // percentile of the distances to the dense-th point that is the radius
	rotations      = 300 // of the power iteration
)

// Written is what the policy wrote in one trajectory.
type Written struct {
	ID     string
	Tokens []int32
}

// ClusterReport holds embeddings in a plane and their clusters.
type ClusterReport struct {
	Points    []ClusterPoint // by ID
	Clusters  int
	Alone     float64 // share of points that are in no cluster
	Within    float64 // mean distance of the points of clusters to their cluster's centre
	Between   float64 // mean distance between two centres; 0 for fewer than two clusters
	Radius    float64 // of DBSCAN
	Explained float64 // share of the embeddings' variance in the plane
}

// ClusterPoint is one trajectory. Clusters are numbered by their first points; −1 is none.
type ClusterPoint struct {
	ID      string
	X, Y    float64
	Cluster int
}

// Clusters embeds trajectories and clusters them. It takes time that grows with the square of their number.
func Clusters(all []Written) ClusterReport {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Written) int { return cmp.Compare(a.ID, b.ID) })
	if len(all) == 0 {
		return ClusterReport{}
	}
	rows := make([][]float64, len(all))
	for i, w := range all {
		rows[i] = embed(w.Tokens)
	}
	out := ClusterReport{Points: make([]ClusterPoint, len(all))}
	x, y, explained := project(rows)
	for i, w := range all {
		out.Points[i] = ClusterPoint{w.ID, x[i], y[i], -1}
	}
	out.Explained = explained
	out.Radius = radiusOf(out.Points)
	out.Clusters = findClusters(out.Points, out.Radius)
	out.measure()
	return out
}

// embed is the embedding of a sequence of tokens: of length 1, or zero for no tokens.
func embed(tokens []int32) []float64 {
	counts := map[uint64]int{}
	for n := 1; n <= longestRun; n++ {
		for i := 0; i+n <= len(tokens); i++ {
			counts[hashOf(tokens[i:i+n])]++
		}
	}
	out := make([]float64, embeddingWidth)
	for _, h := range slices.Sorted(maps.Keys(counts)) { // in one order, so that sums are the same to the last bit
		weight := 1 + math.Log(float64(counts[h]))
		if h>>63 == 1 {
			weight = -weight
		}
		out[h%embeddingWidth] += weight
	}
	if l := math.Sqrt(dot(out, out)); l > 0 {
		for i := range out {
			out[i] /= l
		}
	}
	return out
}

// hashOf is FNV-1a over the tokens' bytes, mixed so that every bit depends on every token.
func hashOf(tokens []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, t := range tokens {
		for shift := 0; shift < 32; shift += 8 {
			h = (h ^ uint64(byte(uint32(t)>>shift))) * 1099511628211
		}
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// project returns the coordinates of rows along their two principal components, and the share of the variance that
// they have.
func project(rows [][]float64) (x, y []float64, explained float64) {
	mean := make([]float64, embeddingWidth)
	for _, r := range rows {
		for i, v := range r {
			mean[i] += v / float64(len(rows))
		}
	}
	cov, trace := make([][]float64, embeddingWidth), 0.0
	for i := range cov {
		cov[i] = make([]float64, embeddingWidth)
	}
	for _, r := range rows {
		for i := range r {
			di := r[i] - mean[i]
			for j := range r {
				cov[i][j] += di * (r[j] - mean[j]) / float64(len(rows))
			}
		}
	}
	for i := range cov {
		trace += cov[i][i]
	}
	first := principal(cov, nil)
	second := principal(cov, first)
	x, y = make([]float64, len(rows)), make([]float64, len(rows))
	for k, r := range rows {
		for i := range r {
			x[k] += first[i] * (r[i] - mean[i])
			y[k] += second[i] * (r[i] - mean[i])
		}
	}
	if trace > 1e-12 {
		explained = (varianceAlong(cov, first) + varianceAlong(cov, second)) / trace
	}
	return x, y, explained
}

// varianceAlong is the variance along a unit vector.
func varianceAlong(cov [][]float64, v []float64) float64 { return dot(times(cov, v), v) }

func times(cov [][]float64, v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range cov {
		out[i] = dot(cov[i], v)
	}
	return out
}

// principal is the unit vector of the most variance, orthogonal to before unless that is nil. Its largest coordinate is
// positive. It is zero where there is no variance.
func principal(cov [][]float64, before []float64) []float64 {
	v := make([]float64, len(cov))
	for i := range v {
		v[i] = 1 / float64(i+1)
	}
	for range rotations {
		v = times(cov, v)
		if before != nil {
			overlap := dot(v, before)
			for i := range v {
				v[i] -= overlap * before[i]
			}
		}
		l := math.Sqrt(dot(v, v))
		if l < 1e-12 {
			return make([]float64, len(cov))
		}
		for i := range v {
			v[i] /= l
		}
	}
	most := slices.MaxFunc(v, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	if most < 0 {
		for i := range v {
			v[i] = -v[i]
		}
	}
	return v
}

func distance(a, b ClusterPoint) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// radiusOf is the radius of DBSCAN.
func radiusOf(points []ClusterPoint) float64 {
	if len(points) < dense {
		return 0
	}
	far, distances := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		for j, q := range points {
			distances[j] = distance(p, q)
		}
		slices.Sort(distances)
		far[i] = distances[dense-1]
	}
	slices.Sort(far)
	return far[int(sparse*float64(len(far)-1))]
}

// findClusters is DBSCAN: it numbers the points' clusters and returns how many there are. A point that several clusters
// reach belongs to the first.
func findClusters(points []ClusterPoint, radius float64) (clusters int) {
	near := func(i int) (out []int) {
		for j := range points {
			if distance(points[i], points[j]) <= radius {
				out = append(out, j)
			}
		}
		return out
	}
	for i := range points {
		if points[i].Cluster >= 0 {
			continue
		}
		open := near(i)
		if len(open) < dense {
			continue
		}
		for len(open) > 0 {
			j := open[0]
			open = open[1:]
			if points[j].Cluster >= 0 {
				continue
			}
			points[j].Cluster = clusters
			if next := near(j); len(next) >= dense {
				open = append(open, next...)
			}
		}
		clusters++
	}
	return clusters
}

// measure fills in the figures of the clusters.
func (r *ClusterReport) measure() {
	centres, sizes := make([]ClusterPoint, r.Clusters), make([]float64, r.Clusters)
	alone := 0
	for _, p := range r.Points {
		if p.Cluster < 0 {
			alone++
			continue
		}
		c := &centres[p.Cluster]
		c.X, c.Y = c.X+p.X, c.Y+p.Y
		sizes[p.Cluster]++
	}
	for i := range centres {
		centres[i].X, centres[i].Y = centres[i].X/sizes[i], centres[i].Y/sizes[i]
	}
	r.Alone = float64(alone) / float64(len(r.Points))
	for _, p := range r.Points {
		if p.Cluster >= 0 {
			r.Within += distance(p, centres[p.Cluster]) / float64(len(r.Points)-alone)
		}
	}
	pairs := float64(r.Clusters*(r.Clusters-1)) / 2
	for i := range centres {
		for j := range i {
			r.Between += distance(centres[i], centres[j]) / pairs
		}
	}
}
