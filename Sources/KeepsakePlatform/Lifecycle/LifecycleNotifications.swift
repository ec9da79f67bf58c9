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
  /// The app loses the player's attention, and goes on: a phone call, the switcher, another window. It may be put into
  /// the background next, or ended.
  package var deactivate: [Notification.Name]
  /// The app stops after this.
  package var suspend: [Notification.Name]
  /// The app goes on after it has stopped.
  package var resume: [Notification.Name]
  /// The app ends after this.
  package var terminate: [Notification.Name]

  package init(
    center: NotificationCenter = .default, deactivate: [Notification.Name] = [], suspend: [Notification.Name] = [],
    resume: [Notification.Name] = [], terminate: [Notification.Name] = []
  ) {
    self.center = center
    self.deactivate = deactivate
    self.suspend = suspend
    self.resume = resume
    self.terminate = terminate
  }

  /// This platform's notifications; none on platforms that use only signals.
  package static var system: LifecycleNotifications {
    #if canImport(UIKit) && !os(watchOS)
    // Those of the app are posted whether it has scenes or not; with several scenes, one may leave the screen alone.
    return LifecycleNotifications(
      deactivate: [UIApplication.willResignActiveNotification, UIScene.willDeactivateNotification],
      suspend: [UIApplication.didEnterBackgroundNotification],
      resume: [UIApplication.willEnterForegroundNotification, UIApplication.didBecomeActiveNotification],
      terminate: [UIApplication.willTerminateNotification])
    #elseif canImport(AppKit)
    // On macOS, an app continues to run in the background.
    return constants {
      LifecycleNotifications(
        deactivate: [NSApplication.willResignActiveNotification, NSApplication.willHideNotification],
        resume: [NSApplication.didBecomeActiveNotification],
        terminate: [NSApplication.willTerminateNotification])
    }
    #elseif canImport(WatchKit)
    return constants {
      LifecycleNotifications(
        deactivate: [WKApplication.willResignActiveNotification],
        suspend: [WKApplication.didEnterBackgroundNotification],
        resume: [WKApplication.willEnterForegroundNotification, WKApplication.didBecomeActiveNotification])
    }
    #else
    return LifecycleNotifications()
    #endif
  }

  /// Reads constants that AppKit and WatchKit bind to the main actor with the rest of their classes (UIKit exempts its
  /// own). They never change, so any thread may read them; a game may begin on another one.
  private static func constants(_ read: @MainActor () -> Self) -> Self {
    withoutActuallyEscaping(read) { unsafeBitCast($0, to: (() -> Self).self)() }
  }

  package var isEmpty: Bool { deactivate.isEmpty && suspend.isEmpty && resume.isEmpty && terminate.isEmpty }
}
