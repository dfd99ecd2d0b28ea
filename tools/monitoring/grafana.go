package monitoring

// The used part of Grafana's format: its dashboards of schema version 39 (Grafana 10.4 and later).

// Dashboard is one of them.
type Dashboard struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	SchemaVersion int        `json:"schemaVersion"`
	Editable      bool       `json:"editable"`
	GraphTooltip  int        `json:"graphTooltip"`
	Refresh       string     `json:"refresh"`
	Time          timeRange  `json:"time"`
	Templating    templating `json:"templating"`
	Links         []link     `json:"links"`
	Panels        []Panel    `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []Variable `json:"list"`
}

// Variable is chosen above the panels.
type Variable struct {
	Name       string         `json:"name"`
	Label      string         `json:"label"`
	Type       string         `json:"type"`
	Query      any            `json:"query"`
	Definition string         `json:"definition,omitempty"`
	Datasource *datasource    `json:"datasource,omitempty"`
	Refresh    int            `json:"refresh"`
	Sort       int            `json:"sort"`
	Multi      bool           `json:"multi"`
	IncludeAll bool           `json:"includeAll"`
	AllValue   string         `json:"allValue,omitempty"`
	Current    map[string]any `json:"current"`
	Options    []any          `json:"options"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// chosen is the data source of the variable.
func chosen() *datasource { return &datasource{"prometheus", "${datasource}"} }

type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type,omitempty"`
	URL         string   `json:"url,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	TargetBlank bool     `json:"targetBlank"`
	AsDropdown  bool     `json:"asDropdown,omitempty"`
	IncludeVars bool     `json:"includeVars,omitempty"`
	KeepTime    bool     `json:"keepTime,omitempty"`
}

// Panel is one of a dashboard; a row has no queries.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	GridPos         position         `json:"gridPos"`
	Datasource      *datasource      `json:"datasource,omitempty"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []transformation `json:"transformations,omitempty"`
	Links           []link           `json:"links,omitempty"`
	Collapsed       bool             `json:"collapsed"`
	Panels          []Panel          `json:"panels"`
}

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query.
type Target struct {
	RefID        string      `json:"refId"`
	Datasource   *datasource `json:"datasource"`
	Expr         string      `json:"expr"`
	LegendFormat string      `json:"legendFormat,omitempty"`
	Format       string      `json:"format,omitempty"`
	Instant      bool        `json:"instant"`
	Range        bool        `json:"range"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	Mappings   []any          `json:"mappings,omitempty"`
	Thresholds *thresholds    `json:"thresholds,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
	Links      []link         `json:"links,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// step is a color from a value on; that of the first one is nil.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
