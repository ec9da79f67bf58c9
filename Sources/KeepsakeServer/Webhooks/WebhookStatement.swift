#if Cloud
/// What a courier asks while players' commits wait or the same readers serve them. One endpoint that is down may have
/// 100,000 rows, so none of these looks at a row of another endpoint.
enum WebhookStatement {
  private static let isWaiting = "endpoint = ? AND dead IS NULL"

  static let scan = "SELECT id, lane FROM webhookEvent WHERE \(isWaiting) AND id > ? ORDER BY id LIMIT ?"
  static let refill = """
    SELECT id FROM webhookEvent WHERE lane = ? AND endpoint = ? AND id > ? AND dead IS NULL ORDER BY id LIMIT 1
    """
  static let countWaiting = "SELECT count(*), min(queued) FROM webhookEvent WHERE \(isWaiting)"
  static let countDead = "SELECT count(*), min(dead) FROM webhookEvent WHERE endpoint = ? AND dead IS NOT NULL"
  static let buryOfLane = """
    UPDATE webhookEvent SET dead = ?, reason = 'too many wait' WHERE id IN
      (SELECT id FROM webhookEvent WHERE lane = ? AND \(isWaiting) ORDER BY id LIMIT ?)
    """
  static let bury = """
    UPDATE webhookEvent SET dead = ?, reason = 'too many wait' WHERE id IN
      (SELECT id FROM webhookEvent WHERE \(isWaiting) ORDER BY id LIMIT ?)
    """
  /// Ids rise with time, so that the old ones are the first ones: it looks at no more than it may bury.
  static let buryOld = """
    UPDATE webhookEvent SET dead = ?, reason = 'too old' WHERE id IN (SELECT id FROM
      (SELECT id, queued FROM webhookEvent WHERE \(isWaiting) ORDER BY id LIMIT ?) WHERE queued < ?)
    """

  // Of webhooks that may not be configured any more.
  static let retire = """
    UPDATE webhookEvent SET dead = ?, reason = 'no such webhook' WHERE id IN
      (SELECT id FROM webhookEvent WHERE \(isWaiting) ORDER BY id LIMIT ?)
    """
  static let nextWaiting = """
    SELECT endpoint FROM webhookEvent WHERE endpoint > ? AND dead IS NULL ORDER BY endpoint LIMIT 1
    """
  static let nextDead = """
    SELECT endpoint FROM webhookEvent WHERE endpoint > ? AND dead IS NOT NULL ORDER BY endpoint LIMIT 1
    """
}
#endif
