public import Foundation

/// https://developer.apple.com/documentation/watchkit/wkapplication
@MainActor
open class WKApplication {
  // "Observing messages from the notification center": documented without "nonisolated".
  public static let willResignActiveNotification = NSNotification.Name("1")
  public static let didEnterBackgroundNotification = NSNotification.Name("2")
  public static let willEnterForegroundNotification = NSNotification.Name("3")
  public static let didBecomeActiveNotification = NSNotification.Name("4")
}
