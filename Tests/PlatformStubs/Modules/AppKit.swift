public import Foundation

/// https://developer.apple.com/documentation/appkit/nsapplication
@MainActor
open class NSApplication {
  // .../nsapplication/willresignactivenotification, willhidenotification, didbecomeactivenotification,
  // willterminatenotification: documented without "nonisolated", unlike those of UIKit.
  public static let willResignActiveNotification = NSNotification.Name("1")
  public static let willHideNotification = NSNotification.Name("2")
  public static let didBecomeActiveNotification = NSNotification.Name("3")
  public static let willTerminateNotification = NSNotification.Name("4")
}
