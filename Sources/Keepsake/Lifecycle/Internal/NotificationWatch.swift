package import Foundation
import Synchronization

#if canImport(UIKit) && !os(watchOS)
import UIKit
#elseif canImport(AppKit)
import AppKit
#elseif canImport(WatchKit)
import WatchKit
#endif

/// The notifications by which a platform's frameworks tell an app what is about to happen to it.
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

  /// This platform's; none where processes are told by signals only.
  package static var system: LifecycleNotifications {
    #if canImport(UIKit) && !os(watchOS)
    return LifecycleNotifications(
      suspend: [UIApplication.didEnterBackgroundNotification], resume: [UIApplication.willEnterForegroundNotification],
      terminate: [UIApplication.willTerminateNotification])
    #elseif canImport(AppKit)
    // An app on macOS runs on in the background.
    return LifecycleNotifications(terminate: [NSApplication.willTerminateNotification])
    #elseif canImport(WatchKit)
    return LifecycleNotifications(
      suspend: [WKApplication.didEnterBackgroundNotification], resume: [WKApplication.willEnterForegroundNotification])
    #else
    return LifecycleNotifications()
    #endif
  }

  var isEmpty: Bool { suspend.isEmpty && resume.isEmpty && terminate.isEmpty }
}

/// One autosave's view of them. They come on the main thread, and when their observers return the app may be stopped or ended.
///
/// An autosave that was made on the thread they come on is told there and then. For any other the notification waits, at most for the
/// deadline, until its loop has taken the event and saved.
final class NotificationWatch {
  enum Event: Sendable, Equatable { case suspend, resume, terminate }

  /// An event that the autosave's loop shall see to, and who waits for that.
  struct Noted: Sendable {
    var event: Event
    var isDone = DispatchSemaphore(value: 0)
  }

  /// What the observers and the autosave's loop share.
  private final class Inbox: Sendable {
    let noted = Mutex<[Noted]>([])
    let hasEvents = Atomic(false)

    func add(_ event: Event) -> Noted {
      let new = Noted(event: event)
      noted.withLock { $0.append(new) }
      hasEvents.store(true, ordering: .releasing)
      return new
    }

    func takeFirst() -> Noted? {
      guard hasEvents.load(ordering: .acquiring) else { return nil }
      return noted.withLock { noted in
        let first = noted.isEmpty ? nil : noted.removeFirst()
        if noted.isEmpty { hasEvents.store(false, ordering: .releasing) }
        return first
      }
    }
  }

  /// Unchecked: called only on the thread on which the autosave was made. For what frameworks post that is the main one, which is nobody
  /// else's meanwhile.
  private struct Direct: @unchecked Sendable {
    var thread = Thread.current
    var handle: (Event) -> Void
  }

  private let center: NotificationCenter
  private let inbox = Inbox()
  private var observers: [any NSObjectProtocol] = []

  /// Nil if the platform has none.
  init?(_ notifications: LifecycleNotifications, within deadline: Duration, handle: @escaping (Event) -> Void) {
    guard !notifications.isEmpty else { return nil }
    center = notifications.center
    let direct = Direct(handle: handle)
    let named = [
      (notifications.suspend, Event.suspend), (notifications.resume, .resume), (notifications.terminate, .terminate),
    ]
    for (names, event) in named {
      for name in names {
        // Without a queue: within the posting, because what comes after it may never run.
        let observer = center.addObserver(forName: name, object: nil, queue: nil) { [inbox] _ in
          if direct.thread === Thread.current { return direct.handle(event) }
          let noted = inbox.add(event)
          if event != .resume { _ = noted.isDone.wait(timeout: .now() + deadline.interval) }
        }
        observers.append(observer)
      }
    }
  }

  /// What the loop shall see to next; `finished` lets whoever posted it go on.
  func take() -> Noted? { inbox.takeFirst() }

  func finished(_ noted: Noted) { noted.isDone.signal() }

  func end() {
    for observer in observers { center.removeObserver(observer) }
    // Whoever waits for a game that is gone.
    while let noted = inbox.takeFirst() { noted.isDone.signal() }
  }
}
