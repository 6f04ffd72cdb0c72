package ground

import (
	"fmt"
	"strings"
	"testing"
)

func TestQuantities(t *testing.T) {
	tests := []struct{ text, want string }{
		{"It takes half an hour.", "1800s"},
		{"It takes 30 minutes, or 0.5 hours.", "1800s 1800s"},
		{"The break is no less than half an hour.", "≥1800s"},
		{"up to 40 hours", "≤144000s"},
		{"within seven days", "≤604800s"},
		{"Once a week", "1times 604800s*"},
		{"every 14 days", "1.2096e+06s"},
		{"once in two weeks", "1times 1.2096e+06s"},
		{"half a year", "6month"},
		{"18 months", "18month"},
		{"a year and a half", "18month"},
		{"four and a half hours", "16200s"},
		{"€4.90 per month", "4.9€ 1month*"},
		{"4.90 euros a month", "4.9€ 1month*"},
		{"50 percent, 50% and half", "0.5share 0.5share 0.5share"},
		{"a quarter of the fare", "0.25share"},
		{"three quarters of an hour before", "2700s"},
		{"20 to 24 °C", "20°C 24°C"},
		{"between 20 and 24 degrees Celsius", "20°C 24°C"},
		{"at 10:00, 10 a.m. and 8 p.m.", "600clock 600clock 1200clock"},
		{"from 9 until 16 o'clock", "≥540clock ≤960clock"},
		{"on 14 May 1868", "14 5month of the year 1868year"},
		{"on Mondays", "0weekday"},
		{"You may go.", ""},
		{"AES-256 and uint8 and http2client", ""},
		{"fifty thousand requests, two hundred doses", "50000 200"},
		{"forty-two", "42"},
		{"1,150 euros", "1150€"},
		{"415,000 square kilometres", "4.15e+11m²"},
		{"the fifth day", "5"},
		{"30–60% charge", "0.3share 0.6share"},
		{"at minus 20 °C", "-20°C"},
		{"at −20 °C", "-20°C"},
		{"3.4 metric tons", "3.4e+06g"},
		{"32 bits or more", "≥32bit"},
		{"not more than 5", "≤5"},
		{"must not cost more than €140", "≤140€"},
		{"older than two years", "≥24month"},
		{"a three-month notice", "3month"},
		{"almost a third of the population, one third of all", "≤0.3333333333333333share 0.3333333333333333share"},
		{"in 1348–50", "1348year 1350year"},
		{"up to 1 in 10 people, one person in five", "≤0.1share 0.2share"},
		{"no rehearsal before 1 p.m.", "≥780clock"},
		{"not used once they are over two years old", "≥24month"},
		{"may not hold more than ten litres", "≤10l"},
	}
	for _, tt := range tests {
		var got []string
		for _, q := range quantities(tt.text) {
			s := fmt.Sprintf("%s%g%s", map[bound]string{most: "≤", least: "≥"}[q.bound], q.value, q.dim)
			if q.weak {
				s += "*"
			}
			got = append(got, s)
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("quantities(%q) = %s, want %s", tt.text, g, tt.want)
		}
	}
}

func FuzzQuantities(f *testing.F) {
	f.Add("up to 30–60% of 1,150 € at 8 p.m. on 14 May 1868, −20 °C")
	f.Add("half half a a. twenty- and a third 9:9 12:61 \xff p.m")
	f.Fuzz(func(t *testing.T, text string) {
		for _, q := range quantities(text) {
			if q.start < 0 || q.end <= q.start || q.end > len(text) {
				t.Errorf("quantities(%q) has %+v", text, q)
			}
		}
	})
}
