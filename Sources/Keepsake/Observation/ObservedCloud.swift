public import Observation

/// The cloud's status as an observable object: a SwiftUI view that reads it is updated when it changes.
///
/// ```swift
/// struct CloudIcon: View {
///   @State var cloud: ObservedCloud      // CloudIcon(cloud: game.cloud.observed())
///
///   var body: some View { Image(systemName: cloud.status.waitingCommits == 0 ? "icloud" : "icloud.and.arrow.up") }
/// }
/// ```
///
/// Shown on the main actor, a moment after each change. Ends with the last reference to it, and when the game's data is
/// closed.
@MainActor
@Observable
public final class ObservedCloud {
  /// Whether everything on this device is in the cloud, and if not, why.
  public private(set) var status: CloudStatus

  @ObservationIgnored private let following = Following()

  init(_ cloud: Cloud) {
    status = cloud.status
    following.begin(
      cloud.statusUpdates, for: self,
      show: { cloud, status in
        if cloud.status != status { cloud.status = status }
      },
      failed: { _, _ in })
  }
}

extension Cloud {
  /// Returns the cloud's status for views.
  ///
  /// - Returns: An object that changes with it.
  @MainActor
  public func observed() -> ObservedCloud { ObservedCloud(self) }
}
