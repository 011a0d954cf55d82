// Package chart draws small figures as SVG: lines with bands and error bars, stacked columns,
// bars, trees and scattered points.
//
// The picture has no colours: a mark of series i has the class s<i>, and the page's style gives it a colour in light
// and in dark mode. All text is escaped. Equal charts give equal bytes.
package chart
