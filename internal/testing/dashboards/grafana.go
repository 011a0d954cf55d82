package dashboards

import (
	"encoding/json"
	"fmt"
)

// Size of a panel in Grafana's grid of 24 columns.
const (
	panelWidth  = 8
	panelHeight = 7
	gridWidth   = 24
)

// object is a JSON object.
type object = map[string]any

// JSON returns the dashboard as a file that Grafana imports or provisions. Its user chooses the data source, and the
// run where the page is about one.
func (d Dashboard) JSON() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${source}"}
	variables := []object{{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	if d.OneRun {
		variables = append(variables, object{"name": "run", "label": "Run", "type": "query", "datasource": source,
			"query": object{"query": "label_values(ropewalk_run_info, run)", "refId": "run"}, "refresh": 2, "sort": 2})
	}
	panels := []object{}
	for i, p := range d.Panels {
		targets := []object{}
		for n, q := range p.Queries {
			targets = append(targets, object{"refId": string(rune('A' + n)), "datasource": source,
				"expr": q.For("$run", "$__rate_interval"), "legendFormat": q.Legend})
		}
		const each = gridWidth / panelWidth
		panels = append(panels, object{"id": i + 1, "type": "timeseries", "title": p.Title, "description": p.Doc,
			"datasource": source, "targets": targets,
			"gridPos": object{"w": panelWidth, "h": panelHeight, "x": i % each * panelWidth,
				"y": i / each * panelHeight},
			"fieldConfig": object{"defaults": object{"unit": p.Unit}, "overrides": []object{}}})
	}
	text, err := json.MarshalIndent(object{"uid": "ropewalk-" + d.Name, "title": d.Title, "description": d.Doc,
		"tags": []string{"ropewalk"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"time": object{"from": "now-6h", "to": "now"}, "templating": object{"list": variables}, "panels": panels},
		"", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard %s: %w", d.Name, err)
	}
	return append(text, '\n'), nil
}
