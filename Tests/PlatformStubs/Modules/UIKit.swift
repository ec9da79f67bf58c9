public import Foundation

/// https://developer.apple.com/documentation/uikit/uiapplication
@MainActor
open class UIApplication {
  // .../uiapplication/willresignactivenotification, didenterbackgroundnotification, willenterforegroundnotification,
  // didbecomeactivenotification, willterminatenotification
  nonisolated public static let willResignActiveNotification = NSNotification.Name("1")
  nonisolated public static let didEnterBackgroundNotification = NSNotification.Name("2")
  nonisolated public static let willEnterForegroundNotification = NSNotification.Name("3")
  nonisolated public static let didBecomeActiveNotification = NSNotification.Name("4")
  nonisolated public static let willTerminateNotification = NSNotification.Name("5")
}

/// https://developer.apple.com/documentation/uikit/uiscene
@MainActor
open class UIScene {
  // .../uiscene/willdeactivatenotification
  nonisolated public static let willDeactivateNotification = NSNotification.Name("6")
}
