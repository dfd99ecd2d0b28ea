package monitoring

import (
	"fmt"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// columns are those of a dashboard's grid.
const columns = 24

// schemaVersion is that of Grafana 10.4.
const schemaVersion = 39

const tag = "mesh-agent"

// newDashboard makes one. Its panels lie in rows, from left to right.
func newDashboard(name, title, description string, more []Variable, rows ...[]Panel) Dashboard {
	return Dashboard{
		UID: "mesh-agent-" + name, Title: "Mesh / " + title, Description: description, Tags: []string{tag}, SchemaVersion: schemaVersion,
		Editable: true, GraphTooltip: 1, Refresh: "30s", Time: timeRange{"now-3h", "now"},
		Templating: templating{append(scopeVariables(), more...)},
		Links: []link{
			{Title: "Dashboards of the mesh", Type: "dashboards", Tags: []string{tag}, AsDropdown: true, IncludeVars: true, KeepTime: true},
			{Title: "What to do (codes)", Type: "link", URL: Runbooks, TargetBlank: true},
		},
		Panels: place(rows),
	}
}

// place gives panels their numbers and positions.
func place(rows [][]Panel) (all []Panel) {
	y := 0
	for _, row := range rows {
		x, height := 0, 0
		for _, p := range row {
			if x+p.GridPos.W > columns {
				x, y, height = 0, y+height, 0
			}
			p.ID, p.GridPos.X, p.GridPos.Y = len(all)+1, x, y
			x, height = x+p.GridPos.W, max(height, p.GridPos.H)
			all = append(all, p)
		}
		y += height
	}
	return all
}

// scope selects the clusters, jobs and instances that the user chose above the panels.
const scope = `cluster=~"$cluster",job=~"$job",instance=~"$instance"`

func scopeVariables() []Variable {
	return []Variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1, Current: map[string]any{}, Options: []any{}},
		variable("cluster", "Agents of cluster", "label_values("+buildInfo+", cluster)"),
		variable("job", "Job", "label_values("+buildInfo+`{cluster=~"$cluster"}, job)`),
		variable("instance", "Agent", "label_values("+buildInfo+`{cluster=~"$cluster",job=~"$job"}, instance)`),
	}
}

// variable is one with all values chosen: also series without the label.
func variable(name, label, query string) Variable {
	return Variable{
		Name: name, Label: label, Type: "query", Query: map[string]any{"qryType": 1, "query": query, "refId": name}, Definition: query, Datasource: chosen(),
		Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*", Current: map[string]any{"text": "All", "value": "$__all"}, Options: []any{},
	}
}

// row begins a part of a dashboard.
func row(title string) []Panel {
	return []Panel{{Type: "row", Title: title, GridPos: position{H: 1, W: columns}, Panels: []Panel{}}}
}

// query is an expression with how its series are called.
type query struct{ expr, legend string }

func newPanel(kind, title, description, unit string, width, height int, queries []query) Panel {
	p := Panel{
		Type: kind, Title: title, Description: description, GridPos: position{H: height, W: width}, Datasource: chosen(),
		FieldConfig: &fieldConfig{Defaults: fieldDefaults{Unit: unit}, Overrides: []any{}}, Panels: []Panel{},
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, Target{
			RefID: string(rune('A' + i)), Datasource: chosen(), Expr: q.expr, LegendFormat: q.legend,
			Instant: kind != "timeseries", Range: kind == "timeseries",
		})
	}
	return p
}

// graph shows series over time. Several of them fill a row.
func graph(title, description, unit string, queries ...query) Panel {
	p := newPanel("timeseries", title, description, unit, 8, 8, queries)
	p.FieldConfig.Defaults.Min = new(0.0)
	p.FieldConfig.Defaults.Custom = map[string]any{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// stat shows the present value in a color: green, or that of the highest step below it.
func stat(title, description, unit, expr string, steps ...step) Panel {
	p := newPanel("stat", title, description, unit, 4, 4, []query{{expr, ""}})
	p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", append([]step{{Color: "green"}}, steps...)}
	p.Options = map[string]any{
		"colorMode": "background", "graphMode": "none", "textMode": "auto",
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
	return p
}

// table shows labels of series as columns, in this order, and the value at the end, unless it has no title.
func table(title, description string, width int, expr, value string, labels ...string) Panel {
	p := newPanel("table", title, description, "short", width, 8, []query{{expr, ""}})
	p.Targets[0].Format = "table"
	order, names, hidden := map[string]int{}, map[string]string{"Value": value}, map[string]bool{"Time": true, "__name__": true, "Value": value == ""}
	for i, l := range append(slices.Clone(labels), "Value") {
		order[l] = i
	}
	p.Transformations = []transformation{{"organize", map[string]any{"excludeByName": hidden, "indexByName": order, "renameByName": names}}}
	p.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	return p
}

func (p Panel) wide(columns int) Panel {
	p.GridPos.W = columns
	return p
}

// runbook adds links to what to do.
func (p Panel) runbook(all ...codes.Code) Panel {
	for _, code := range all {
		e, _ := codes.Find(string(code))
		p.Links = append(p.Links, link{Title: fmt.Sprintf("%s: %s", e.Code, e.Title), URL: Runbook(code), TargetBlank: true})
	}
	return p
}

// limit draws a line where it becomes red.
func (p Panel) limit(at float64) Panel {
	p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", []step{{Color: "green"}, {"red", &at}}}
	p.FieldConfig.Defaults.Custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	return p
}

// means shows values as words.
func (p Panel) means(words map[string]string) Panel {
	options := make(map[string]any)
	for value, text := range words {
		options[value] = map[string]any{"text": text}
	}
	p.FieldConfig.Defaults.Mappings = []any{map[string]any{"type": "value", "options": options}}
	return p
}

func red(from float64) step    { return step{"red", &from} }
func orange(from float64) step { return step{"orange", &from} }

// of selects the series of a metric that are chosen above the panels, with further matchers.
func of(metric string, more ...string) string {
	matchers := scope
	for _, m := range more {
		matchers += "," + m
	}
	return metric + "{" + matchers + "}"
}

// perSecond is the rate of a counter, summed by labels.
func perSecond(by, metric string, more ...string) string {
	return sumBy(by, "rate("+of(metric, more...)+"[$__rate_interval])")
}

func sumBy(by, expr string) string {
	if by == "" {
		return "sum(" + expr + ")"
	}
	return "sum by (" + by + ") (" + expr + ")"
}

func maxBy(by, expr string) string { return "max by (" + by + ") (" + expr + ")" }

// quantile of a histogram, by labels.
func quantile(q, by, metric string, more ...string) string {
	if by != "" {
		by += ", "
	}
	return fmt.Sprintf("histogram_quantile(%s, sum by (%sle) (rate(%s[$__rate_interval])))", q, by, of(metric+"_bucket", more...))
}
