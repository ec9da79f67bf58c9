/// What a piece of a text for people is, which a terminal may show by its color.
package enum TextRole: Equatable, Sendable {
  case heading
  /// The name of a field or a setting.
  case name
  case added
  case removed
  /// As it should be.
  case good
  case bad
  /// Less important than what is around it.
  case faint
  /// One of several lines of development that stand side by side, counted from 0.
  case line(Int)
}

/// Shows a piece of text by its role.
package typealias TextPaint = (_ text: String, _ role: TextRole) -> String
