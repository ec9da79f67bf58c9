package import Foundation

#if canImport(UIKit) && !os(watchOS)
import UIKit
#elseif canImport(AppKit)
import AppKit
#elseif canImport(WatchKit)
import WatchKit
#endif

/// The notifications with which a platform's frameworks announce lifecycle changes to an app.
package struct LifecycleNotifications: Sendable {
  package var center: NotificationCenter
  package var suspend: [Notification.Name]
  package var resume: [Notification.Name]
  package var terminate: [Notification.Name]

  package init(
    center: NotificationCenter = .default, suspend: [Notification.Name] = [], resume: [Notification.Name] = [],
    terminate: [Notification.Name] = []
  ) {
    self.center = center
    self.suspend = suspend
    self.resume = resume
    self.terminate = terminate
  }

  /// This platform's notifications; none on platforms that use only signals.
  package static var system: LifecycleNotifications {
    #if canImport(UIKit) && !os(watchOS)
    return LifecycleNotifications(
      suspend: [UIApplication.didEnterBackgroundNotification], resume: [UIApplication.willEnterForegroundNotification],
      terminate: [UIApplication.willTerminateNotification])
    #elseif canImport(AppKit)
    // On macOS, an app continues to run in the background.
    return LifecycleNotifications(terminate: [NSApplication.willTerminateNotification])
    #elseif canImport(WatchKit)
    return LifecycleNotifications(
      suspend: [WKApplication.didEnterBackgroundNotification], resume: [WKApplication.willEnterForegroundNotification])
    #else
    return LifecycleNotifications()
    #endif
  }

  package var isEmpty: Bool { suspend.isEmpty && resume.isEmpty && terminate.isEmpty }
}
