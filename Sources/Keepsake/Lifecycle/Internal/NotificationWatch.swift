import Foundation
import KeepsakePlatform
import Synchronization

/// One autosave's view of the lifecycle notifications. They are posted on the main thread, and the app may be stopped
/// or ended as soon as their observers return.
///
/// An autosave created on the posting thread handles the event directly. For any other, the observer blocks until the
/// autosave's loop has taken the event and saved, at most for the deadline; it doesn't block for a resume. What follows
/// one another at once, such as leaving the screen and going to the background, shares the deadline.
final class NotificationWatch {
  enum Event: Sendable, Equatable { case deactivate, suspend, resume, terminate }

  /// An event for the autosave's loop to handle, with the semaphore that its poster waits on.
  struct Noted: Sendable {
    var event: Event
    /// Gives back the background time that was asked for until the loop has taken it.
    var endBackground: @Sendable () -> Void
    var isDone = Latch()
  }

  /// What the observers and the autosave's loop share.
  private final class Inbox: Sendable {
    let noted = Mutex<[Noted]>([])
    let hasEvents = Atomic(false)

    func add(_ new: Noted) -> Noted {
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

  /// Unchecked: called only on the thread on which the autosave was created. For notifications that frameworks post,
  /// that is the main thread, which runs nothing else meanwhile.
  private struct Direct: @unchecked Sendable {
    var thread = Thread.current
    var handle: (Event, _ limit: Duration) -> Void
  }

  private let center: NotificationCenter
  private let inbox = Inbox()
  private var observers: [any NSObjectProtocol] = []

  /// Returns nil if the platform has none.
  init?(
    _ notifications: LifecycleNotifications, within deadline: Duration, _ activity: ProcessActivity,
    handle: @escaping (Event, _ limit: Duration) -> Void
  ) {
    guard !notifications.isEmpty else { return nil }
    center = notifications.center
    let direct = Direct(handle: handle)
    let key = ObjectIdentifier(center)
    let named = [
      (notifications.deactivate, Event.deactivate), (notifications.suspend, .suspend), (notifications.resume, .resume),
      (notifications.terminate, .terminate),
    ]
    for (names, event) in named {
      for name in names {
        // Without a queue, so that it runs while the notification is posted: code scheduled for later may never run.
        let observer = center.addObserver(forName: name, object: nil, queue: nil) { [inbox] _ in
          let share = NoticeBudget.share(of: deadline, at: key, isNew: event == .resume)
          defer { share.end() }
          if direct.thread === Thread.current { return direct.handle(event, share.limit) }
          guard event != .resume else {
            _ = inbox.add(Noted(event: event, endBackground: {}))
            return
          }
          let endBackground = activity.beginBackground("Waiting for the game to save")
          inbox.add(Noted(event: event, endBackground: endBackground)).isDone.wait(within: share.limit)
        }
        observers.append(observer)
      }
    }
  }

  /// Returns the next event for the loop to handle; `finished` lets its poster continue.
  func take() -> Noted? { inbox.takeFirst() }

  func finished(_ noted: Noted) {
    noted.endBackground()
    noted.isDone.open()
  }

  func end() {
    for observer in observers { center.removeObserver(observer) }
    // Release posters that would wait for a game that is gone.
    while let noted = inbox.takeFirst() { finished(noted) }
  }
}
